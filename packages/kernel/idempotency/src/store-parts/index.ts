export { fenceMemoryMs, storedRecords } from "./key-row.ts";
export { wrappedErrors } from "./sql-errors.ts";
export { transactionBroken } from "../refusals.ts";
export { cursorBehind, damagedCursor, keyBefore, pageOf, type Row } from "./list-query.ts";
export { pooledClients, type ClientPool, type PooledClient } from "./pooled-client.ts";
export { pruning } from "./pruning.ts";
export type { RemoteIdempotencyStore } from "./remote-store.ts";
export { leaseExpired } from "../store.ts";
export {
  decideClaim,
  decodeText,
  encodeText,
  Gate,
  operatorEntry,
  StoreGate,
  textUpTo,
  type ArgumentRule,
  type StoredRecord,
} from "../store-rules.ts";
export { assertTransaction } from "./transaction.ts";
export {
  StatementGate,
  type ClosedStatements,
  type StatementEffect,
} from "../transactions/statement-gate.ts";
