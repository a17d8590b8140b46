import type { IdempotencyStore } from "@countersign/idempotency";
import type { PayStep } from "@countersign/store-contract/model";

export const leaseMs = 1_000;
export const retentionMs = 86_400_000;

/** A clock that stands still until it is told. */
export interface Clock {
  nowMs: number;
}

/** Which of the two processes of a platform does a step. */
export type ProcessIndex = 0 | 1;

/** Payments on record: a table that refuses no second row for a key, so that a double payment would be seen. */
export interface Payments {
  /** A transaction with a payment and the completion of its key. Answers what the store said about the key. */
  pay(by: ProcessIndex, step: PayStep): Promise<unknown>;
  /** The key of every committed payment. */
  paidKeys(): Promise<readonly string[]>;
}

/** A platform of two processes on one empty store. */
export interface Platform {
  store(process: ProcessIndex): IdempotencyStore;
  /** The process dies and comes back; nothing where the store lives in it. */
  restart(process: ProcessIndex): void | Promise<void>;
  readonly payments?: Payments | undefined;
  /** Whether a step failed because it met a lock for too long, as it may under concurrency. */
  gaveUpWaiting?(error: unknown): boolean;
  close(): void | Promise<void>;
}

/** A kind of store, on a clock that a test moves. */
export interface Engine {
  /** Whether payments can commit together with their keys. */
  readonly pays: boolean;
  /** How many runs of the model it affords in `npm run test:long`. */
  readonly numRuns: number;
  /** Whether prune() removes what has ended; otherwise the engine does by itself. */
  readonly prunes: boolean;
  open(clock: Clock): Promise<Platform>;
  /** Removes everything from a server. */
  close(): Promise<void>;
}

/** How long one property may run, in milliseconds: on a busy machine fewer runs are made, none is cut short. */
export const propertyTimeMs = 7_000;
