export {
  memoryAnswerStore,
  type AnswerStore,
  type MemoryAnswerStore,
  type TransactionAnswerStore,
} from "./answers.ts";
export type { IdempotencyCode } from "./refusals.ts";
export { retryLater } from "./attempt-end.ts";
export { IdempotencyKeys, idempotencyKeys, type DrainOptions, type DrainReport } from "./idempotency-keys.ts";
export type { IdempotencyKeysOptions } from "./key-options.ts";
export type { OwnedKey } from "./owned-key.ts";
export type { ConnectionPool, Database, SqlValue } from "./transactions/database.ts";
export type { ClosedStatements, StatementGate } from "./transactions/statement-gate.ts";
export type {
  NoPromise,
  TransactionBegun,
  TransactionClaim,
  TransactionFault,
  TransactionKey,
  TransactionMode,
  TransactionStore,
  TransactionStores,
  TransactionTurn,
} from "./transactions/transaction-store.ts";
export { createIdempotencyStore, type IdempotencyStoreOptions } from "./table-store.ts";
export { memoryIdempotencyStore, type MemoryIdempotencyStore } from "./memory-store.ts";
export {
  type Awaitable,
  type IdempotencyClaim,
  type IdempotencyClaimResult,
  type IdempotencyDecision,
  type IdempotencyListing,
  type IdempotencyListQuery,
  type IdempotencyOwnership,
  type IdempotencyRecord,
  type IdempotencyStore,
  type ReleasedKey,
} from "./store.ts";
