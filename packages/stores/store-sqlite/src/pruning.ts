import { type PrunedBatch, startPruning } from "@countersign/idempotency/store";
import { type SqliteDatabase, isInTransaction } from "./connection.ts";

/** How many rows one step removes: so long the process does nothing else, and no other process writes. */
export const pruneBatchSize = 100;

/** What is pruned. */
export interface PrunedTable {
  /** Whose table it is, for notices. */
  readonly factory: string;
  readonly database: SqliteDatabase;
  readonly intervalMs: number;
  readonly removeBatch: () => PrunedBatch;
}

/** Prunes in the background. Returns the function that ends it. */
export function pruneInBackground({ factory, database, intervalMs, removeBatch }: PrunedTable): () => void {
  // The caller may have a transaction open across an await: pruning must neither join it nor fail it.
  const tryBatch = (): number | undefined => (isInTransaction(database) ? undefined : removeBatch().rows);
  return startPruning({
    factory,
    engine: "sqlite",
    intervalMs,
    batchSize: pruneBatchSize,
    removeBatch: tryBatch,
  });
}
