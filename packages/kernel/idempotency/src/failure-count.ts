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
