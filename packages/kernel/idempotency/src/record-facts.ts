import type { IdempotencyRecord } from "./store.ts";

/** The fingerprint of a key that counts a failed attempt. No digest of a payload is so short. */
export const failureFingerprint = "failure";

/** The key that counts failure `failure` (1, 2, …) of the event with this key. An event_id holds no control characters. */
export function failureKey(key: string, failure: number): string {
  return `${key}\tfailure-${failure}`;
}

/**
 * Whether the key counts a failed attempt of an event. It counts from its claim on: where the process died before it was done, nobody
 * has to decide anything, although the lease of the run has ended.
 */
export function isFailureCount(key: string, { state, fingerprint }: IdempotencyRecord): boolean {
  return state !== "held" && fingerprint === failureFingerprint && /\tfailure-\d+$/.test(key);
}

// Before the first fence of any store, and how far the clock of an engine may be ahead of this machine's.
const earliestMs = Date.UTC(2020, 0, 1);
const aheadMs = 86_400_000;

/**
 * When the attempt with this fence began, in milliseconds since 1970: a fence is the engine's time in microseconds, or a little more
 * (decision 0014). Undefined for one that cannot be a time, such as the count of a store of one's own.
 */
export function begunAtMs(fence: number, nowMs: number): number | undefined {
  const ms = Math.floor(fence / 1000);
  return ms >= earliestMs && ms <= nowMs + aheadMs ? ms : undefined;
}
