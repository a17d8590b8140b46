export { commitUnconfirmed, tellsWarnings, watchCommits } from "./commit-watch.ts";
export { parseDecision, seenRow } from "./key-row.ts";
export { fenceMemoryMs } from "../table-store.ts";
export { wrappedErrors } from "./sql-errors.ts";
export type { Within } from "../transactions/database.ts";
export { transactionBroken, transactionNotRolledBack } from "../refusals.ts";
export { cursorBehind, damagedCursor, keyBefore, pageOfRows, type Row } from "./list-query.ts";
export { pooledClients, type ClientPool, type PooledClient } from "./pooled-client.ts";
export { pruning, type PrunedBatch } from "./pruning.ts";
export { leaseExpired } from "../store.ts";
export {
  brokenReason,
  decideClaim,
  decideOwn,
  expires,
  firstBegin,
  isOver,
  operatorEntry,
  transactionEnd,
  type FirstChange,
  type KeyChange,
  type KeyRow,
  type SeenRow,
} from "../life.ts";
export {
  beginKeys,
  byKey,
  freeKeys,
  holdBroken,
  holdOwn,
  isAnyRun,
  type Added,
  type NewRow,
  type RowsWithin,
} from "../transactions/key-steps-within.ts";
export { answerOf, runSteps, runStepsIn, runStepsNow, type Steps } from "../transactions/steps.ts";
export { isAsSeen, type KeyTable, type ListedRows, type Seen } from "../key-table.ts";
export { TableStore, type Returned, type TableStoreOptions } from "../table-store.ts";
export { decodeText, encodeText, Gate, StoreGate, textUpTo, type ArgumentRule } from "../store-rules.ts";
export {
  StatementGate,
  type ClosedStatements,
  type StatementEffect,
} from "../transactions/statement-gate.ts";
export { refusedText } from "../transactions/transaction-texts.ts";
