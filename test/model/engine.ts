import { memoryIdempotencyStore, type IdempotencyStore } from "@countersign/idempotency";
import type { PayStep } from "../../packages/stores/store-contract/dist/model/step.js";

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
  paidKeys(): Promise<readonly string[]>;
}

/** A platform of two processes on one empty store. */
export interface Platform {
  store(process: ProcessIndex): IdempotencyStore;
  readonly payments?: Payments | undefined;
  /** Whether a step failed because it met a lock for too long, as it may under concurrency. */
  gaveUpWaiting?(error: unknown): boolean;
  close(): void | Promise<void>;
}

/** A kind of store, on a clock that a test moves. */
export interface Engine {
  readonly pays: boolean;
  readonly numRuns: number;
  open(clock: Clock): Promise<Platform>;
  close(): Promise<void>;
}

export function memoryEngine(): Engine {
  return {
    pays: false,
    numRuns: 1_000,
    async open(clock) {
      const store = memoryIdempotencyStore({ max: 8, retentionMs, now: () => clock.nowMs });
      return { store: () => store, close: () => store.close() };
    },
    close: async () => {},
  };
}
