import type { Attempt } from "../perform.ts";
import type { Progress } from "./progress.ts";
import type { TransactionBegun, TransactionKey } from "./transaction-store.ts";

/** What a handler's steps have in one transaction. */
export interface OpenTransaction<Tx> {
  readonly tx: Tx;
  readonly begun: TransactionBegun;
  /** The keys in the order of the attempt, each with the token of this run alone. */
  readonly keys: readonly TransactionKey[];
  readonly progress: Progress;
}

export interface TransactionAttempt extends Attempt {
  /** Whether no request waits for it: where a transaction holds the event loop, it begins in a part of a turn that others leave to it. */
  readonly isBackground?: boolean | undefined;
}
