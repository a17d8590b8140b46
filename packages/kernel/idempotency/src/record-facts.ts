import type { IdempotencyRecord } from "./store.ts";

// Of a key that counts a failed attempt: no payload digest is so short.
const failureFingerprint = "failure";

/** Keys that count the failed attempts at an event. */
export const failureCounts = { of: failureCount, has: isFailureCount };

/** What claims the key that counts failure 1, 2, … of this key's event. An event_id holds no control characters. */
function failureCount(key: string, failure: number): { readonly key: string; readonly fingerprint: string } {
  return { key: `${key}\tfailure-${failure}`, fingerprint: failureFingerprint };
}

/** True for a key that counts a failed attempt, from its claim on: if the process died before it was done, nobody has to decide. */
function isFailureCount(key: string, { state, fingerprint }: IdempotencyRecord): boolean {
  return state !== "held" && fingerprint === failureFingerprint && /\tfailure-\d+$/.test(key);
}

// Below the first fence of any store, and the most by which an engine's clock may be ahead of this machine's.
const earliestMs = Date.UTC(2020, 0, 1);
const aheadMs = 86_400_000;

/**
 * When this fence's attempt began, in ms since 1970: a fence is the engine's microseconds or a little more (decision 0014).
 * Undefined where it cannot be a time, such as an own store's count.
 */
export function begunAtMs(fence: number, nowMs: number): number | undefined {
  const ms = Math.floor(fence / 1000);
  return ms >= earliestMs && ms <= nowMs + aheadMs ? ms : undefined;
}
