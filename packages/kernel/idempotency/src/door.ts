export type { KeyAttempt } from "./attempt-store.ts";
export { begunAtMs, failureFingerprint, failureKey, isFailureCount } from "./record-facts.ts";
export { assertTimeoutInLease, keyRules, type ResolvedKeyOptions } from "./key-options.ts";
export { Waiters } from "./waiters.ts";
export type { KeyRefusal } from "./idempotency-keys.ts";
