import { withDeadline } from "@countersign/core";
import { hasMethods, option, optionError, readOptions, type OptionTable } from "@countersign/core/internal";
import type { VerificationKey } from "@countersign/http-message-signatures";
import { LRUCache } from "lru-cache";
import {
  assertForgettable,
  isLookup,
  vet,
  type CachingKeyStore,
  type KeyLookup,
  type KeyStore,
} from "./key-store.ts";

export interface CachedKeysOptions {
  /** How long a key is used without asking again, in seconds; a withdrawn key is accepted for as long. Default 300. */
  readonly ttlSeconds?: number | undefined;
  /** How long a keyid stays unknown without asking again, in seconds; a new key is refused for as long. Default 10. */
  readonly negativeTtlSeconds?: number | undefined;
  /** Known and unknown keyids remembered at most, each. Default 1,000. */
  readonly max?: number | undefined;
  /** How long one look-up may take, in milliseconds; then the next request asks anew. Default 2,000. */
  readonly lookupTimeoutMs?: number | undefined;
  /** Look-ups under way at most; one more rejects, unless its key was known lately. Default 100. */
  readonly maxLookups?: number | undefined;
}

export const table: OptionTable<CachedKeysOptions> = {
  ttlSeconds: option.integer({ min: 1, max: 86_400, fallback: 300 }),
  negativeTtlSeconds: option.integer({ min: 1, max: 86_400, fallback: 10 }),
  max: option.integer({ min: 1, max: 1_000_000, fallback: 1000 }),
  lookupTimeoutMs: option.integer({ min: 1, max: 60_000, fallback: 2000 }),
  maxLookups: option.integer({ min: 1, max: 100_000, fallback: 100 }),
};

/** The keyid is wire text of a request whose signature is not yet checked. */
export type KeySource = KeyLookup;

/**
 * Caches a slow key source. Concurrent look-ups of a keyid share one call; unknown keyids have their own cache: a flood evicts no key.
 * Errors are not cached; keys are vetted once. `get` rejects (503) when look-ups are late or too many. Throws a TypeError on a bad option.
 */
export function cachedKeys(store: KeySource | KeyStore, options: CachedKeysOptions = {}): CachingKeyStore {
  const lookup = sourceOf(store);
  const { ttlSeconds, negativeTtlSeconds, max, lookupTimeoutMs, maxLookups } = readOptions(
    factoryName,
    table,
    options,
  );
  // An entry stays when its time is over and when its key is forgotten: it marks a keyid that was known.
  const known = new LRUCache<string, KnownKey>({
    max,
    ttl: ttlSeconds * 1000,
    noDeleteOnStaleGet: true,
  });
  const unknown = new LRUCache<string, true>({ max, ttl: negativeTtlSeconds * 1000 });
  const underWay = new Map<string, Promise<VerificationKey | undefined>>();

  const load = async (keyid: string, isLatest: () => boolean): Promise<VerificationKey | undefined> => {
    const late = (): Error =>
      new Error(`${factoryName}: a look-up had no answer within ${lookupTimeoutMs} ms`);
    // async: a throw of a synchronous source becomes a rejection.
    const asked = (async () => lookup(keyid))();
    // Drops a late answer: a newer look-up may have found the key withdrawn.
    const found = await withDeadline(asked, lookupTimeoutMs, late);
    // forget() was called meanwhile: the source may have answered before the key was revoked.
    if (!isLatest()) return get(keyid);
    if (found === undefined || found === null) {
      known.delete(keyid);
      unknown.set(keyid, true);
      return undefined;
    }
    const key = vet(found, { keyid, owner: factoryName, name: "keys" });
    known.set(keyid, { key });
    return key;
  };

  // Unbounded, any caller fills memory and the source's queue. A flood of unknown keyids must not keep a key in use from being read again.
  const hasRoom = (keyid: string): boolean =>
    underWay.size < maxLookups || known.peek(keyid, { allowStale: true }) !== undefined;

  const get = (keyid: string): VerificationKey | undefined | Promise<VerificationKey | undefined> => {
    const key = known.get(keyid)?.key;
    if (key !== undefined || unknown.has(keyid)) return key;
    const pending = underWay.get(keyid);
    if (pending !== undefined) return pending;
    if (!hasRoom(keyid)) {
      return Promise.reject(new Error(`${factoryName}: ${maxLookups} look-ups are under way`));
    }
    const isLatest = (): boolean => underWay.get(keyid) === loading;
    const loading = load(keyid, isLatest).finally(() => {
      if (isLatest()) underWay.delete(keyid);
    });
    underWay.set(keyid, loading);
    return loading;
  };

  return {
    engine: typeof store === "function" ? undefined : store.engine,
    get,
    forget(keyid) {
      assertForgettable(factoryName, keyid);
      // The least recently used keyid first: it stays the first to be evicted.
      const keyids = keyid === undefined ? [...known.rkeys()] : [keyid];
      for (const each of keyids) if (known.has(each)) known.set(each, forgotten);
      if (keyid === undefined) {
        unknown.clear();
        underWay.clear();
      } else {
        unknown.delete(keyid);
        underWay.delete(keyid);
      }
    },
  };
}

const factoryName = "cachedKeys";

interface KnownKey {
  /** Undefined once it is forgotten. */
  readonly key: VerificationKey | undefined;
}

const forgotten: KnownKey = { key: undefined };

function sourceOf(store: unknown): KeySource {
  if (isLookup(store)) return store;
  if (hasMethods<KeyStore>(store, "get")) return (keyid) => store.get(keyid);
  throw optionError(factoryName, "store", "a function or a KeyStore", store);
}
