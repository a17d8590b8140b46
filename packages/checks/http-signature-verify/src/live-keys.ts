import { quoteForLog } from "@countersign/core";
import {
  option,
  publishFailure,
  publishNotice,
  RefreshingValue,
  workSlices,
  type OptionTable,
} from "@countersign/core/internal";
import type { ImportedKeys, KeyValidity, VerificationKey } from "@countersign/http-message-signatures";
import { keyDocuments } from "@countersign/http-message-signatures/internal";
import { assertForgettable, type CachingKeyStore } from "./key-store.ts";

/** A KeyStore that refreshes its keys itself and replaces them as one set. */
export interface LiveKeyStore extends CachingKeyStore {
  /** Resolves when there is a set; rejects when the first one cannot be had. Await it before the server listens. */
  ready(): Promise<void>;
  /**
   * Reads the set now, or once more after the reading under way, which may have missed the latest change. Rejects when the set cannot be
   * had; the last good one stays in use.
   */
  refresh(): Promise<void>;
  /** The keys of the present set; none before there is one. */
  keys(): readonly VerificationKey[];
  /** Ends timers, watchers and what is under way. Every later look-up rejects. */
  close(): void;
}

export interface LiveKeysOptions {
  /** Keys of a set at most, and files. Default 100. */
  readonly maxKeys?: number | undefined;
  /** Bytes of a document or a file at most, uncompressed. Default 262,144. */
  readonly maxBytes?: number | undefined;
  /** A key's scope, subject and further validity, by its keyid. Default none. */
  readonly validity?: ((keyid: string) => KeyValidity | undefined) | undefined;
  /** A monotonic clock in milliseconds; default performance.now. */
  readonly now?: (() => number) | undefined;
}

export const liveKeysRules: OptionTable<LiveKeysOptions> = {
  maxKeys: option.integer({ min: 1, max: 10_000, fallback: 100 }),
  maxBytes: option.integer({ min: 1, max: 16_777_216, fallback: 262_144 }),
  validity: option.call<(keyid: string) => KeyValidity | undefined>(() => undefined, "none"),
  now: option.clock(() => performance.now(), "performance.now"),
};

/** Times in milliseconds since the reading. */
interface LoadedKeys extends ImportedKeys {
  /** When it is read again in the background. */
  readonly refreshMs: number;
  /** How long it is used without asking, at least `refreshMs`. */
  readonly freshMs: number;
}

export interface LiveKeysSource {
  /** The factory, in notices. */
  readonly guard: string;
  /** Rejects when there is no usable document. */
  readonly load: (signal: AbortSignal) => Promise<LoadedKeys>;
  /** How long no request causes another attempt. */
  readonly cooldownMs: number;
  /** How long a set is used beyond its `freshMs` while no other can be had. */
  readonly staleMs: number;
  /** Whether an unknown keyid causes a reading, once the cool-down is over. Default false. */
  readonly readsForUnknown?: boolean | undefined;
  /** Milliseconds that never go back. */
  readonly clock: () => number;
  readonly onClose?: (() => void) | undefined;
}

/** Reads ahead of the set's end, one reading at a time; over failures the last good set stays for a bounded time. */
export function liveKeys({
  guard,
  load,
  staleMs,
  readsForUnknown = false,
  ...source
}: LiveKeysSource): LiveKeyStore {
  let publishedFaults = "";
  let publishedKeys: VerificationKeys = new Map();
  /** Forgotten since the last good reading: whether they are withdrawn is in doubt. */
  const forgotten = new Set<string>();
  const live = new RefreshingValue<LoadedKeys>({
    ...source,
    guard,
    async load(signal) {
      const value = await load(signal);
      if (signal.aborted) throw live.closed();
      publishedFaults = publishFaults(guard, value, publishedFaults);
      if (value.keys.size === 0 && value.faults.length > 0) throw new Error("no key of the set can be used");
      publishChanges(guard, value.keys, publishedKeys);
      publishedKeys = value.keys;
      forgotten.clear();
      return { value, refreshMs: value.refreshMs };
    },
    closedBecause: "the key store is closed",
    onFailure(error, hasSet) {
      const message = hasSet ? "the last good set of keys stays in use" : "there is no set of keys";
      publishFailure({ guard, code: "keys-not-refreshed", message, error });
    },
  });

  const keyAfter = async (refresh: Promise<void>, keyid: string): Promise<VerificationKey | undefined> => {
    await refresh;
    return live.value?.keys.get(keyid);
  };

  /** A new key may be in the next set, so strangers cause one reading per cool-down. Not remembered: that would keep a new key unknown. */
  const getUnknown = (keyid: string): undefined | Promise<VerificationKey | undefined> => {
    if (!readsForUnknown && !forgotten.has(keyid)) return undefined;
    if (live.mayWait()) return keyAfter(live.refresh(), keyid);
    // Whether the key exists is in doubt while the set cannot be read.
    return live.failure === undefined ? undefined : Promise.reject(live.failure);
  };

  const keptKey = (keyid: string): VerificationKey | undefined => {
    const set = live.value;
    return set !== undefined && live.ageMs() < set.freshMs + staleMs ? set.keys.get(keyid) : undefined;
  };

  const getFromNextSet = async (keyid: string): Promise<VerificationKey | undefined> => {
    const mayWait = live.mayWait();
    // After a failed attempt, a key that is known does not wait for the next one to fail as slowly.
    const kept = live.failure === undefined ? undefined : keptKey(keyid);
    if (kept !== undefined) {
      if (mayWait) live.refreshInBackground();
      return kept;
    }
    if (mayWait) {
      try {
        return await keyAfter(live.refresh(), keyid);
      } catch {
        // A key that was known before may do.
      }
    }
    const key = keptKey(keyid);
    if (key !== undefined) return key;
    throw live.failure ?? new Error(`${guard}: there is no set of keys`);
  };

  return {
    engine: guard,
    // Not async: a key of a fresh set costs no turn of the event loop.
    get(keyid) {
      if (live.isClosed) return Promise.reject(live.closed());
      const ageMs = live.ageMs();
      const set = live.value;
      if (set === undefined || ageMs >= set.freshMs) return getFromNextSet(keyid);
      // Also where no timer runs, or one is late.
      if (ageMs >= set.refreshMs && live.mayAttempt()) live.refreshInBackground();
      return set.keys.get(keyid) ?? getUnknown(keyid);
    },
    ready: () => live.ready(),
    refresh: () => live.refreshAgain(),
    forget(keyid) {
      assertForgettable(guard, keyid);
      if (keyid !== undefined) forgotten.add(keyid);
      live.replace(keyid === undefined ? undefined : without(live.value, keyid));
    },
    keys: () => [...(live.value?.keys.values() ?? [])],
    close: () => live.close(),
  };
}

type VerificationKeys = ReadonlyMap<string, VerificationKey>;

/** The other keys of a set stay in use. */
function without(set: LoadedKeys | undefined, keyid: string): LoadedKeys | undefined {
  return set && { ...set, keys: new Map([...set.keys].filter(([each]) => each !== keyid)) };
}

type Importing = typeof keyDocuments.importEach;

/** As importKeys(), while requests are served: a large document takes longer than they may wait. */
export async function importInSlices(...given: Parameters<Importing>): Promise<ImportedKeys> {
  const importing = keyDocuments.importEach(...given);
  for (;;) {
    const { done, value } = importing.next();
    if (done === true) return value;
    // oxlint-disable-next-line no-await-in-loop -- yields to the event loop
    while (workSlices.over) await workSlices.next();
  }
}

const maxPublished = 5;

// Only when they change: a set is read every few minutes.
function publishFaults(guard: string, { faults }: ImportedKeys, before: string): string {
  const published = faults.map(({ keyid, error }) => `${shown(keyid)}: ${error.message}`).join("; ");
  if (published === before) return before;
  for (const { keyid, error } of faults.slice(0, maxPublished)) {
    const message = `the key ${shown(keyid)} is left out`;
    publishFailure({ guard, code: "key-left-out", message, error });
  }
  return published;
}

function publishChanges(guard: string, keys: VerificationKeys, before: VerificationKeys): void {
  const added = [...keys.keys()].filter((keyid) => !before.has(keyid));
  const removed = [...before.keys()].filter((keyid) => !keys.has(keyid));
  if (added.length + removed.length === 0) return;
  const message = `keys that came: ${listed(added)}; keys that went: ${listed(removed)}`;
  publishNotice({ guard, code: "keys-changed", message });
}

function listed(keyids: readonly string[]): string {
  const more = keyids.length > maxPublished ? ` and ${keyids.length - maxPublished} more` : "";
  return keyids.length === 0 ? "none" : keyids.slice(0, maxPublished).map(shown).join(", ") + more;
}

function shown(keyid: string | undefined): string {
  return keyid === undefined ? "without a keyid" : quoteForLog(keyid);
}
