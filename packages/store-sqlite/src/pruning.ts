import { channel } from "node:diagnostics_channel";
import { type SqliteDatabase } from "./driver.ts";
import { factory } from "./options.ts";
import { isInTransaction } from "./transaction.ts";

/** How many rows one transaction removes: the write lock is given back in between. */
export const pruneBatchSize = 500;

const nextBatchMs = 50;

/** The guards' channel for what is not the verdict on one request. */
const noticeChannel = channel("countersign:notice");

/** What a pruning timer needs. */
export interface Pruning {
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

/**
 * Prunes in the background, one batch at a time so that the event loop is free in between. The timer keeps no process alive,
 * and its jitter keeps processes that started together apart. Returns the function that ends it.
 */
export function startPruning(pruning: Pruning): () => void {
  if (pruning.intervalMs === 0) return () => {};
  let timer: NodeJS.Timeout;
  const schedule = (delayMs: number): void => {
    timer = setTimeout(() => schedule(pruneOnce(pruning)), delayMs);
    timer.unref();
  };
  schedule(jittered(pruning.intervalMs));
  return () => clearTimeout(timer);
}

// Returns the delay until the next batch.
function pruneOnce({ database, intervalMs, removeBatch }: Pruning): number {
  try {
    // The caller has a transaction open across an await: pruning must neither join it nor fail it.
    if (isInTransaction(database)) return jittered(intervalMs);
    return removeBatch() < pruneBatchSize ? jittered(intervalMs) : Math.min(nextBatchMs, intervalMs);
  } catch (error) {
    // Nothing is lost but disk space, and there is no request to answer: tell the operator and try again later.
    noticeChannel.publish({
      guard: factory,
      code: "prune-failed",
      message: "expired rows could not be removed from SQLite; the next attempt follows",
      error,
    });
    return jittered(intervalMs);
  }
}

function jittered(intervalMs: number): number {
  return Math.ceil(intervalMs * (0.75 + Math.random() / 2));
}
