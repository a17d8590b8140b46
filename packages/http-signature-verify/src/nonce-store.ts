import {
  option,
  readOptions,
  refuseInProduction,
  type NonceStore,
  type OptionTable,
} from "@countersign/core";
import { LRUCache } from "lru-cache";

/** Options of {@link memoryNonceStore}. */
export interface MemoryNonceStoreOptions {
  /** Live nonces at most; one more throws, which answers 503. Default 100,000. */
  readonly max?: number | undefined;
  /** Run although NODE_ENV is `production`: right for a single process whose restart takes longer than a signature lives. */
  readonly allowInProduction?: boolean | undefined;
  /** A monotonic clock in milliseconds; default performance.now. */
  readonly now?: (() => number) | undefined;
}

export const table: OptionTable<MemoryNonceStoreOptions> = {
  max: option.integer({ min: 1, max: 16_000_000, fallback: 100_000 }),
  allowInProduction: option.boolean(false),
  now: option.clock(() => performance.now(), "performance.now"),
};

const purgePauseMs = 1000;

/**
 * Nonces in the memory of this process. When full it drops what has expired, then refuses; it never evicts a live nonce.
 * Throws a TypeError on a bad option and, unless allowed, when NODE_ENV is `production`.
 */
export function memoryNonceStore(options: MemoryNonceStoreOptions = {}): NonceStore {
  const { max, allowInProduction, now } = readOptions("memoryNonceStore", table, options);
  refuseInProduction("memoryNonceStore", allowInProduction);
  // One place more than is ever used, so that the cache itself has no reason to evict.
  const tokens = new LRUCache<string, string>({ max: max + 1, ttlResolution: 0, perf: { now } });
  let purgedAt = -Infinity;

  const hasRoom = (): boolean => {
    if (tokens.size < max) return true;
    // A full store must not pay a sweep for every request that it refuses.
    if (now() - purgedAt < purgePauseMs) return false;
    purgedAt = now();
    tokens.purgeStale();
    return tokens.size < max;
  };

  return {
    claim({ scope, nonce, token, retainMs }) {
      const key = `${scope.length}:${scope}${nonce}`;
      const owner = tokens.get(key);
      if (owner !== undefined) return owner === token ? "fresh" : "seen";
      if (!hasRoom()) throw new Error(`memoryNonceStore: full with ${max} live nonces`);
      // A time to live of 0 would mean forever.
      tokens.set(key, token, { ttl: Math.max(1, Math.ceil(retainMs)) });
      return "fresh";
    },
  };
}
