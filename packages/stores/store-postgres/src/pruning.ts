import { type PrunedBatch, startPruning } from "@countersign/idempotency/store";
import { factoryName } from "./options.ts";

/** How many rows one step removes: their locks are given back in between. */
export const pruneBatchSize = 500;

/** Prunes in the background. Returns the function that ends it. */
export function pruneInBackground(intervalMs: number, removeBatch: () => Promise<PrunedBatch>): () => void {
  const tryBatch = async (): Promise<number> => (await removeBatch()).rows;
  return startPruning({
    factory: factoryName,
    engine: "postgresql",
    intervalMs,
    batchSize: pruneBatchSize,
    removeBatch: tryBatch,
  });
}
