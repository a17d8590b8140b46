export { assertDecision } from "../stored-record.ts";
export {
  assertDuration,
  assertOpen,
  assertOutcome,
  assertText,
  assertTransaction,
  decodeText,
  encodeText,
  StoreGate,
  type TransactionShape,
} from "./store-gate.ts";
export { fenceMemoryMs, storedRecord } from "./key-row.ts";
export {
  assertListQuery,
  damagedCursor,
  keyBefore,
  pageOf,
  type PageReading,
  type Row,
} from "./list-query.ts";
export { pruneAll, pruneAllRemote, prunedKeys, startPruning, type PrunedBatch } from "./pruning.ts";
export type { RemoteIdempotencyStore } from "./remote-store.ts";
export { leaseExpired } from "../store.ts";
export { decideClaim, operatorEntry, recordOf, releasedOf, type StoredRecord } from "../stored-record.ts";
