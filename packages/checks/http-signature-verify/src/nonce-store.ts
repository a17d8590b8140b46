import { type NonceStore } from "@countersign/core";
import { option, readOptions, refuseInProduction, type OptionTable } from "@countersign/core/internal";

interface Claim {
  readonly token: string;
  readonly untilMs: number;
}

export interface MemoryNonceStoreOptions {
  /** Live nonces at most; one more throws, which answers 503. Default 100,000. */
  readonly max?: number | undefined;
  /** Allow NODE_ENV `production`: right for a single process whose restart takes longer than a signature lives. Default false. */
  readonly allowInProduction?: boolean | undefined;
  /** A monotonic clock in milliseconds; default performance.now. */
  readonly now?: (() => number) | undefined;
}

export const table: OptionTable<MemoryNonceStoreOptions> = {
  max: option.integer({ min: 1, max: 16_000_000, fallback: 100_000 }),
  allowInProduction: option.shown(option.boolean(false)),
  now: option.clock(() => performance.now(), "performance.now"),
};

const purgePauseMs = 1000;

/**
 * Keeps nonces in the memory of this process. When full it drops what has expired, then refuses; it never evicts a live nonce. Throws a
 * TypeError on a bad option and, unless allowed, when NODE_ENV is `production`.
 */
export function memoryNonceStore(options: MemoryNonceStoreOptions = {}): NonceStore {
  const { max, allowInProduction, now } = readOptions("memoryNonceStore", table, options);
  const warnInProduction = refuseInProduction("memoryNonceStore", allowInProduction);
  const claims = new Map<string, Claim>();
  let purgedAt = -Infinity;

  const hasRoom = (): boolean => {
    if (claims.size < max) return true;
    // A full store must not pay a sweep for every request that it refuses.
    const nowMs = now();
    if (nowMs - purgedAt < purgePauseMs) return false;
    purgedAt = nowMs;
    for (const [key, { untilMs }] of claims) if (untilMs < nowMs) claims.delete(key);
    return claims.size < max;
  };

  return {
    engine: "memory",
    claim({ scope, nonce, token, retainMs }) {
      warnInProduction();
      const key = `${scope.length}:${scope}${nonce}`;
      const nowMs = now();
      const earlier = claims.get(key);
      // Negated, so that a time that is no number ends no nonce.
      if (earlier !== undefined && !(earlier.untilMs < nowMs))
        return earlier.token === token ? "fresh" : "seen";
      // An expired nonce leaves its own place.
      if (earlier === undefined && !hasRoom()) {
        throw new Error(`memoryNonceStore: full with ${max} live nonces`);
      }
      claims.set(key, { token, untilMs: nowMs + Math.max(1, Math.ceil(retainMs)) });
      return "fresh";
    },
  };
}
