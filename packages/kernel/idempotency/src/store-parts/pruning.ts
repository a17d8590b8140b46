import { traces, type PublishedEvents } from "@countersign/core";
import { publishNotice, traced } from "@countersign/core/internal";
import type { Steps } from "../transactions/steps.ts";
import type { Row } from "./list-query.ts";

// 10,000 rows a second: more than a store takes in, with time for others in between.
const rowsPerMs = 10;

/** How a store removes what has expired: in the background, and for `prune()`. */
export const pruning = { start: startPruning, all: pruneAll, batchOf: prunedKeys };

interface Pruning {
  /** The store's factory: the `guard` of a notice. */
  readonly factory: string;
  /** The store's `engine`, for traces. Default `other`. */
  readonly engine?: string | undefined;
  /** Milliseconds between prunings, give or take a quarter; 0 for none. */
  readonly intervalMs: number;
  /** The most rows that one step removes, since others wait for it. */
  readonly batchSize: number;
  /** Removes at most `batchSize` rows. Returns how many; undefined when it cannot try now. */
  readonly removeBatch: () => number | undefined | Promise<number | undefined>;
}

/**
 * Prunes in the background, in batches with turns for others in between; returns the function that ends it. The timer keeps no process
 * alive; its jitter keeps processes apart. A failure is a `prune-failed` on `countersign:notice`, and tried again. Traced as `prune`.
 */
function startPruning(given: Pruning): () => void {
  const { factory, intervalMs, batchSize } = given;
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
    // Only space is lost, and no request waits: tell the operator.
    const message = "expired rows could not be removed; the next attempt follows";
    if (!ended) publishNotice({ guard: factory, code: "prune-failed", message, error });
    schedule(jittered(intervalMs));
  };
  async function run(): Promise<void> {
    try {
      proceed(await observedBatch(given));
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
  if (!traces.store.hasSubscribers) return removeBatch();
  const context: PublishedEvents["store"] = { engine, step: "prune" };
  return traced(traces.store, context, { work: removeBatch, outcomeOf: () => "ok" });
}

/** What one step removed. */
export interface PrunedBatch {
  readonly rows: number;
  readonly counted: number;
}

/** Counts these rows of keys, but free ones: no caller knows of them. */
function prunedKeys(rows: readonly Row[]): PrunedBatch {
  return { rows: rows.length, counted: rows.filter((row) => row["state"] === "done").length };
}

/** Removes batches until one is not full: one at a time, so that its locks are given back in between. Returns the number counted. */
function* pruneAll(batchSize: number, removeBatch: () => Steps<PrunedBatch>): Steps<number> {
  let pruned = 0;
  for (;;) {
    const { rows, counted } = yield* removeBatch();
    pruned += counted;
    if (rows < batchSize) return pruned;
  }
}

function jittered(intervalMs: number): number {
  return Math.ceil(intervalMs * (0.75 + Math.random() / 2));
}
