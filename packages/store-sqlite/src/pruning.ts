import { startPruning } from "@countersign/store-core";
import type { SqliteDatabase } from "./driver.ts";
import { factory } from "./options.ts";
import { isInTransaction } from "./transaction.ts";

/** How many rows one step removes: so long the process does nothing else, and no other process writes. */
export const pruneBatchSize = 100;

/** What is pruned. */
export interface PrunedTable {
  readonly database: SqliteDatabase;
  readonly intervalMs: number;
  /** Removes one batch and returns its size. */
  readonly removeBatch: () => number;
}

/** Removes batches until one is not full. Returns how many rows went. */
export function pruneAll(removeBatch: () => number): number {
  let removed = 0;
  for (;;) {
    const batch = removeBatch();
    removed += batch;
    if (batch < pruneBatchSize) return removed;
  }
}

/** Prunes in the background. Returns the function that ends it. */
export function pruneInBackground({ database, intervalMs, removeBatch }: PrunedTable): () => void {
  // The caller may have a transaction open across an await: pruning must neither join it nor fail it.
  const tryBatch = (): number | undefined => (isInTransaction(database) ? undefined : removeBatch());
  return startPruning({ factory, intervalMs, batchSize: pruneBatchSize, removeBatch: tryBatch });
}
