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
export { fenceMemoryMs, storedRecord, type RowNumbers } from "./key-row.ts";
export {
  assertListQuery,
  cursorBehind,
  damagedCursor,
  keyBefore,
  pageOf,
  type PageReading,
  type Row,
} from "./list-query.ts";
export {
  pruneAll,
  pruneAllRemote,
  prunedKeys,
  startPruning,
  type PrunedBatch,
  type Pruning,
} from "./pruning.ts";
export type { RemoteIdempotencyStore } from "./remote-store.ts";
