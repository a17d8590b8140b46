export { fenceMemoryMs, storedRecord } from "./key-row.ts";
export { damagedCursor, keyBefore, pageOf, type PageReading, type Row } from "./list-query.ts";
export { pruneAll, pruneAllRemote, prunedKeys, startPruning, type PrunedBatch } from "./pruning.ts";
export type { RemoteIdempotencyStore } from "./remote-store.ts";
export { leaseExpired } from "../store.ts";
export {
  decideClaim,
  decodeText,
  encodeText,
  operatorEntry,
  recordOf,
  releasedOf,
  StoreGate,
  type StoredRecord,
} from "../store-rules.ts";
export { assertTransaction, type TransactionShape } from "./transaction.ts";
