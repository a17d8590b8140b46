export { idempotencyGuard } from "./middleware.ts";
export type { IdempotencyGuardOptions } from "./options.ts";
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
  type IdempotencyOwnership,
  type IdempotencyRecord,
  type IdempotencyStore,
} from "./store.ts";
