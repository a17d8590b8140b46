import { watch, type FSWatcher } from "node:fs";
import path from "node:path";
import { option, optionError, readOptions, type OptionTable } from "@countersign/core/door";
import type { KeyValidity } from "@countersign/http-message-signatures";
import { readKeyFiles } from "./key-files.ts";
import { LiveKeys, type LiveKeyStore } from "./live-keys.ts";

/** Options of {@link directoryKeys}. */
export interface DirectoryKeysOptions {
  /** How often the files are read where no watcher tells of a change, in seconds. Default 30. */
  readonly pollSeconds?: number | undefined;
  /** How long the last good set is used while the files cannot be, in seconds. Default 86,400. */
  readonly staleIfErrorSeconds?: number | undefined;
  /** Keys of all files at most, and files. Default 100. */
  readonly maxKeys?: number | undefined;
  /** Bytes of a file at most. Default 262,144. */
  readonly maxBytes?: number | undefined;
  /** What a key's scope, subject and validity are, by its keyid. Default none. */
  readonly validity?: ((keyid: string) => KeyValidity | undefined) | undefined;
  /** A monotonic clock in milliseconds; default performance.now. */
  readonly now?: (() => number) | undefined;
}

export const table: OptionTable<DirectoryKeysOptions> = {
  pollSeconds: option.integer({ min: 1, max: 86_400, fallback: 30 }),
  staleIfErrorSeconds: option.integer({ min: 0, max: 604_800, fallback: 86_400 }),
  maxKeys: option.integer({ min: 1, max: 10_000, fallback: 100 }),
  maxBytes: option.integer({ min: 1, max: 16_777_216, fallback: 262_144 }),
  validity: option.call<(keyid: string) => KeyValidity | undefined>(() => undefined, "none"),
  now: option.clock(() => performance.now(), "performance.now"),
};

const factoryName = "directoryKeys";
// Editors and kubelet make several events of one change.
const settleMs = 50;

/**
 * The keys in the files of a directory, or in one file, which are watched. `<keyid>.pem`, `<keyid>.public.pem` and `<keyid>.pub` hold one
 * key; `.jwk`, `.jwks` and `.json` a JWK, a JWK Set, or a record of keyid to key. Other files, hidden ones and directories are not read.
 * All of it is one set: while any file or key of it is bad, or there is none, the last good set stays in use for a bounded time,
 * which is told on `countersign:notice`. Throws an OptionError on a bad option.
 */
export function directoryKeys(location: string, options: DirectoryKeysOptions = {}): LiveKeyStore {
  if (typeof location !== "string" || location === "" || location.includes("\0")) {
    throw optionError(factoryName, "path", "the path of a directory or a file", location);
  }
  const { pollSeconds, staleIfErrorSeconds, now, ...bounds } = readOptions(factoryName, table, options);
  const place = path.resolve(location);
  const watcher = new PlaceWatcher(() => void store.refresh().catch(() => {}));
  const pollMs = 1000 * pollSeconds;
  const store = new LiveKeys({
    guard: factoryName,
    async load() {
      // Before it is read: what changes meanwhile is an event.
      watcher.watch(place);
      return { ...(await readKeyFiles(place, bounds)), refreshMs: pollMs, freshMs: 2 * pollMs };
    },
    cooldownMs: pollMs,
    staleMs: 1000 * staleIfErrorSeconds,
    clock: now,
    onClose: () => watcher.close(),
  });
  return store;
}

/** Watches a directory, or the directory of a file, and tells of changes when they have settled. */
class PlaceWatcher {
  readonly #onChange: () => void;
  #watchers: readonly FSWatcher[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Anew at each call: the directory may be another one under its old name. */
  watch(place: string): void {
    this.#stop();
    const { dir, base } = path.parse(place);
    // Beside the place itself its name, which may be a link, and what Kubernetes exchanges beside a file: `..data`.
    const concerns = (name: string | null): boolean =>
      name === null || name === base || name.startsWith("..");
    this.#watchers = [...this.#start(place, () => true), ...this.#start(dir, concerns)];
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#stop();
  }

  #start(watched: string, concerns: (name: string | null) => boolean): readonly FSWatcher[] {
    if (this.#isClosed) return [];
    try {
      const watcher = watch(watched, { persistent: false }, (_event, name) => {
        if (concerns(name)) this.#settle();
      });
      // A directory that is removed, or no watches left: polling finds what changes.
      watcher.on("error", () => watcher.close());
      return [watcher];
    } catch {
      return [];
    }
  }

  #stop(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
  }

  #settle(): void {
    // Not put off by further events: files that change without end are read all the same.
    if (this.#timer !== undefined || this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#onChange();
    }, settleMs);
    this.#timer.unref();
  }
}
