export { idempotencyGuard, type DrainableMiddleware } from "./middleware.ts";
export type { IdempotencyGuardOptions } from "./options.ts";
export { idempotencyKeys, type IdempotencyKeys } from "./idempotency-keys.ts";
export type { DrainOptions, DrainReport } from "./drain.ts";
export type { IdempotencyKeysOptions } from "./key-options.ts";
export type { KeyAttempt, KeyInDoubt } from "./key-attempt.ts";
export type { KeyNotice } from "./notices.ts";
export type { KeyRefusal } from "./acquire.ts";
export type { OwnedKey } from "./owned-key.ts";
export type { RequestIdempotency } from "./request-idempotency.ts";
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
} from "./store.ts";
