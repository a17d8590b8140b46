import { storeTrace, type StoreTrace } from "@countersign/core";
import { publishNotice, traced } from "@countersign/core/door";
import type { Row } from "./list-query.ts";

// 10,000 rows a second: more than a store takes in, and time for others in between.
const rowsPerMs = 10;

/** What {@link startPruning} needs. */
export interface Pruning {
  /** The factory whose store is pruned: the `guard` of a notice. */
  readonly factory: string;
  /** `engine` of the store, for traces. Default `other`. */
  readonly engine?: string | undefined;
  /** Milliseconds from one pruning to the next, give or take a quarter; 0 for none. */
  readonly intervalMs: number;
  /** How many rows one step removes at most: for so long it keeps others waiting. */
  readonly batchSize: number;
  /** Removes at most `batchSize` rows. Returns how many; undefined when it could not be tried now. */
  readonly removeBatch: () => number | undefined | Promise<number | undefined>;
}

/**
 * Prunes in the background, one batch at a time so that others get their turn in between. The timer keeps no process alive, and
 * its jitter keeps processes that started together apart. A failure is published as `prune-failed` on `countersign:notice` and
 * tried again. Each batch is a `prune` on `countersign:store`, for who subscribes. Returns the function that ends it.
 */
export function startPruning(pruning: Pruning): () => void {
  const { factory, intervalMs, batchSize } = pruning;
  if (intervalMs === 0) return () => {};
  let timer: NodeJS.Timeout | undefined;
  let ended = false;

  const schedule = (delayMs: number): void => {
    if (ended) return;
    timer = setTimeout(() => void run(), delayMs);
    timer.unref();
  };
  const proceed = (removed: number | undefined): void => {
    const full = removed !== undefined && removed >= batchSize;
    schedule(full ? Math.min(batchSize / rowsPerMs, intervalMs) : jittered(intervalMs));
  };
  const fail = (error: unknown): void => {
    // Nothing is lost but space, and there is no request to answer: tell the operator.
    const message = "expired rows could not be removed; the next attempt follows";
    if (!ended) publishNotice({ guard: factory, code: "prune-failed", message, error });
    schedule(jittered(intervalMs));
  };
  async function run(): Promise<void> {
    try {
      proceed(await observedBatch(pruning));
    } catch (error) {
      fail(error);
    }
  }

  schedule(jittered(intervalMs));
  return () => {
    ended = true;
    clearTimeout(timer);
  };
}

/** Without a time-out: nothing waits for it. */
function observedBatch({ engine = "other", removeBatch }: Pruning): ReturnType<Pruning["removeBatch"]> {
  if (!storeTrace.hasSubscribers) return removeBatch();
  const context: StoreTrace = { engine, step: "prune" };
  return traced(storeTrace, context, { work: removeBatch, outcomeOf: () => "ok" });
}

/** What one step of pruning has removed. */
export interface PrunedBatch {
  readonly rows: number;
  /** How many of them `prune()` counts. */
  readonly counted: number;
}

/** The batch of these rows of keys. A free one is not counted: no caller knows that it was there. */
export function prunedKeys(rows: readonly Row[]): PrunedBatch {
  return { rows: rows.length, counted: rows.filter((row) => row["state"] === "done").length };
}

/** Removes batches until one is not full. Returns how many rows are counted. */
export function pruneAll(batchSize: number, removeBatch: () => PrunedBatch): number {
  let pruned = 0;
  for (;;) {
    const { rows, counted } = removeBatch();
    pruned += counted;
    if (rows < batchSize) return pruned;
  }
}

/** {@link pruneAll} on a server. */
export async function pruneAllRemote(
  batchSize: number,
  removeBatch: () => Promise<PrunedBatch>,
): Promise<number> {
  let pruned = 0;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one batch at a time, so that its locks are given back in between
    const { rows, counted } = await removeBatch();
    pruned += counted;
    if (rows < batchSize) return pruned;
  }
}

function jittered(intervalMs: number): number {
  return Math.ceil(intervalMs * (0.75 + Math.random() / 2));
}
