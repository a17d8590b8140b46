export {
  memoryAnswerStore,
  type AnswerStore,
  type MemoryAnswerStore,
  type MemoryAnswerStoreOptions,
} from "./answers.ts";
export type { KeyAttempt } from "./attempt-store.ts";
export { begunAtMs } from "./begun-at.ts";
export type { IdempotencyCode } from "./codes.ts";
export { failureFingerprint, failureKey, isFailureCount } from "./failure-count.ts";
export {
  IdempotencyKeys,
  idempotencyKeys,
  type DrainOptions,
  type DrainReport,
  type KeyRefusal,
} from "./idempotency-keys.ts";
export {
  assertTimeoutInLease,
  keyRules,
  type IdempotencyKeysOptions,
  type ResolvedKeyOptions,
} from "./key-options.ts";
export type { KeyNotice } from "./notices.ts";
export type { KeyInDoubt, OwnedKey } from "./owned-key.ts";
export { Waiters, type WaitersOptions, type WaitOutcome } from "./waiters.ts";
export {
  memoryIdempotencyStore,
  type MemoryIdempotencyStore,
  type MemoryIdempotencyStoreOptions,
} from "./memory-store.ts";
export {
  leaseExpired,
  type Awaitable,
  type IdempotencyClaim,
  type IdempotencyClaimResult,
  type IdempotencyDecision,
  type IdempotencyOwnership,
  type IdempotencyListing,
  type IdempotencyListQuery,
  type IdempotencyRecord,
  type IdempotencyStore,
  type KeptDecision,
  type OperatorEntry,
  type ReleasedKey,
} from "./store.ts";
export {
  assertDecision,
  decideClaim,
  operatorEntry,
  recordOf,
  releasedOf,
  type ClaimDecision,
  type StoredRecord,
} from "./stored-record.ts";
