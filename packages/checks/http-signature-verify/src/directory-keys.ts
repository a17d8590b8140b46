import { type FSWatcher, watch } from "node:fs";
import { open, opendir, stat } from "node:fs/promises";
import path from "node:path";
import { quoteForLog } from "@countersign/core";
import {
  isError,
  option,
  optionError,
  readOptions,
  type Given,
  type OptionTable,
} from "@countersign/core/internal";
import type { ImportedKeys, KeyFault, VerificationKey } from "@countersign/http-message-signatures";
import { keyDocuments } from "@countersign/http-message-signatures/internal";
import {
  importInSlices,
  liveKeys,
  liveKeysRules,
  type LiveKeysOptions,
  type LiveKeyStore,
} from "./live-keys.ts";

export interface DirectoryKeysOptions extends LiveKeysOptions {
  /** How often the files are read where no watcher reports a change, in seconds. Default 30. */
  readonly pollSeconds?: number | undefined;
  /** How long the last good set is used while the files cannot be read, in seconds. Default 86,400. */
  readonly staleIfErrorSeconds?: number | undefined;
}

export const table: OptionTable<DirectoryKeysOptions> = {
  ...liveKeysRules,
  pollSeconds: option.integer({ min: 1, max: 86_400, fallback: 30 }),
  staleIfErrorSeconds: option.integer({ min: 0, max: 604_800, fallback: 86_400 }),
};

const factoryName = "directoryKeys";
// Editors and kubelet make several events of one change.
const settleMs = 50;

/**
 * Keeps the keys of a directory or file, and watches it. `<keyid>.pem`, `<keyid>.public.pem` and `<keyid>.pub` hold one key; `.jwk`,
 * `.jwks` and `.json` a JWK, a JWK Set or a record by keyid; no other, hidden or nested file is read. While any file or key is bad, or
 * there is none, the last good set stays for a bounded time, with a notice on `countersign:notice`. Throws an OptionError.
 */
export function directoryKeys(location: string, options: DirectoryKeysOptions = {}): LiveKeyStore {
  if (typeof location !== "string" || location === "" || location.includes("\0")) {
    throw optionError(factoryName, "path", "the path of a directory or a file", location);
  }
  const { pollSeconds, staleIfErrorSeconds, now, ...bounds } = readOptions(factoryName, table, options);
  const place = path.resolve(location);
  const watcher = watchPlace(place, () => void store.refresh().catch(() => {}));
  const pollMs = 1000 * pollSeconds;
  const store: LiveKeyStore = liveKeys({
    guard: factoryName,
    async load() {
      // Before it is read: what changes meanwhile is an event.
      watcher.restart();
      return { ...(await readKeyFiles(place, bounds)), refreshMs: pollMs, freshMs: 2 * pollMs };
    },
    cooldownMs: pollMs,
    staleMs: 1000 * staleIfErrorSeconds,
    clock: now,
    onClose: watcher.close,
  });
  return store;
}

/** Watches a directory, or the directory of a file, once restart() is called; calls `onChange` when its changes have settled. */
function watchPlace(
  place: string,
  onChange: () => void,
): { readonly restart: () => void; readonly close: () => void } {
  const { dir, base } = path.parse(place);
  // The place's own name, which may be a link, and what Kubernetes exchanges beside a file: `..data`.
  const isNear = (name: string | null): boolean => name === null || name === base || name.startsWith("..");
  let watchers: readonly FSWatcher[] = [];
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  const settle = (): void => {
    // Not put off by further events: files that change without end are read all the same.
    if (timer !== undefined || isClosed) return;
    timer = setTimeout(() => {
      timer = undefined;
      onChange();
    }, settleMs);
    timer.unref();
  };

  const start = (watched: string, concerns: (name: string | null) => boolean): readonly FSWatcher[] => {
    try {
      const watcher = watch(watched, { persistent: false }, (_event, name) => {
        if (concerns(name)) settle();
      });
      // A directory that is removed, or no watches left: polling finds what changes.
      watcher.on("error", () => watcher.close());
      return [watcher];
    } catch {
      return [];
    }
  };

  const stop = (): void => {
    for (const watcher of watchers) watcher.close();
    watchers = [];
  };

  return {
    // Anew at each reading: the directory may be another one under its old name.
    restart() {
      stop();
      if (isClosed) return;
      watchers = [...start(place, () => true), ...start(dir, isNear)];
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      stop();
    },
  };
}

type KeyFileBounds = Omit<Given<LiveKeysOptions>, "now">;

const maxAttempts = 3;
const maxEntriesPerKey = 10;

/** Throws an Error that names the file and shows nothing of its content. */
async function readKeyFiles(place: string, bounds: KeyFileBounds): Promise<ImportedKeys> {
  for (let attempt = 1; ; attempt += 1) {
    // oxlint-disable no-await-in-loop -- again when it has changed meanwhile
    const before = await listFiles(place, bounds);
    try {
      const read = await readAll(before, bounds);
      if (isSame(before, await listFiles(place, bounds))) return read;
    } catch (error) {
      if (attempt === maxAttempts || isSame(before, await listFiles(place, bounds))) throw error;
    }
    // oxlint-enable no-await-in-loop
    if (attempt === maxAttempts) throw new Error("the key files change while they are read");
  }
}

interface ListedFile {
  readonly file: string;
  readonly keyid: string;
  /** What changes with the content: half of an old set and half of a new one are no set. */
  readonly state: string;
}

async function listFiles(place: string, { maxKeys }: KeyFileBounds): Promise<readonly ListedFile[]> {
  const stats = await stat(place);
  const names = stats.isDirectory() ? await keyFileNames(place, maxKeys) : [""];
  if (names.length === 0) throw new Error("the directory holds no key file");
  return Promise.all(
    names.map(async (name) => {
      const file = path.join(place, name);
      // Follows links: with Kubernetes each file is one to a directory that is exchanged.
      const { dev, ino, size, mtimeMs, ctimeMs } = await stat(file);
      const keyid = keyDocuments.keyidOfFile(path.basename(file)) ?? path.parse(file).name;
      return { file, keyid, state: [file, dev, ino, size, mtimeMs, ctimeMs].join(" ") };
    }),
  );
}

async function keyFileNames(directory: string, maxKeys: number): Promise<readonly string[]> {
  const names: string[] = [];
  let entries = 0;
  for await (const entry of await opendir(directory)) {
    entries += 1;
    if (entries > maxEntriesPerKey * maxKeys || names.length > maxKeys) {
      throw new Error(`the directory holds more than ${maxKeys} key files, or too much beside them`);
    }
    if (keyDocuments.keyidOfFile(entry.name) !== undefined && !entry.isDirectory()) names.push(entry.name);
  }
  return names;
}

function isSame(one: readonly ListedFile[], other: readonly ListedFile[]): boolean {
  const states = new Set(other.map(({ state }) => state));
  return one.length === other.length && one.every(({ state }) => states.has(state));
}

async function readAll(files: readonly ListedFile[], bounds: KeyFileBounds): Promise<ImportedKeys> {
  const { maxKeys, validity } = bounds;
  const keys = new Map<string, VerificationKey>();
  const forOthers: KeyFault[] = [];
  for (const { file, keyid } of files) {
    // oxlint-disable-next-line no-await-in-loop -- one file in memory at a time
    const content = await readBytes(file, bounds);
    // oxlint-disable-next-line no-await-in-loop -- as above
    const imported = await inFile(file, () => importInSlices(content, { keyid, maxKeys, validity }));
    const fault = imported.faults.find((each) => !each.isForOthers || imported.keys.size === 0);
    if (fault !== undefined) throw faultIn(file, fault.error, fault.keyid);
    forOthers.push(...imported.faults);
    for (const [id, key] of imported.keys) {
      if (keys.has(id)) throw faultIn(file, new Error("it stands in another file too"), id);
      keys.set(id, key);
    }
  }
  if (keys.size > maxKeys) throw new Error(`the files hold more than ${maxKeys} keys`);
  if (keys.size === 0) throw new Error("the files hold no key");
  return { keys, faults: forOthers };
}

async function readBytes(file: string, { maxBytes }: KeyFileBounds): Promise<Buffer> {
  // Before it is opened: opening a pipe would wait for a writer.
  const stats = await stat(file);
  if (!stats.isFile()) throw faultIn(file, new Error("it is no file"));
  const handle = await open(file, "r");
  try {
    const buffer = Buffer.alloc(Math.min(stats.size, maxBytes) + 1);
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
    if (bytesRead > maxBytes) throw faultIn(file, new Error(`it has more than ${maxBytes} bytes`));
    // Longer than it was: it is being written.
    if (bytesRead > stats.size) throw faultIn(file, new Error("it changes while it is read"));
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

async function inFile<T>(file: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw faultIn(file, error);
  }
}

function faultIn(file: string, error: unknown, keyid?: string): Error {
  const reason = isError(error) ? error.message : "it cannot be read";
  const place = `${quoteForLog(path.basename(file), 128)}${keyid === undefined ? "" : `, keyid ${quoteForLog(keyid)}`}`;
  return new Error(`${place}: ${reason}`, { cause: error });
}
