import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { isGuardError, withDeadline, type NonceClaim, type NonceStore } from "@countersign/core";
import { askStore } from "@countersign/core/door";
import {
  commitUnknown,
  isTransactionBroken,
  keysDraining,
  storeUnavailable,
  transactionConflict,
  transactionTimedOut,
  transactionUnavailable,
} from "../refusals.ts";
import type { Awaitable } from "../store.ts";
import { Lanes, type Entrance } from "./lanes.ts";
import {
  answerOf,
  nonceSeen,
  outcomeOf,
  SingleRun,
  untilPromise,
  type Progress,
  type Steps,
  type StoreStep,
} from "./steps.ts";
import type { Behind, NotRun, OpenTransaction, TransactionAttempt } from "./transaction-attempt.ts";
import type { ResolvedTransactionOptions } from "./transaction-options.ts";
import type { TransactionKey, TransactionStore, TransactionStores } from "./transaction-store.ts";

// Four were too few where many transactions meet one page of an index.
const maxAttempts = 10;
const longestPauseMs = 200;

/** Runs handlers in transactions that claim their keys: the state table of decision 0069. */
export class Transactor<Tx> {
  readonly #store: TransactionStore<Tx>;
  readonly #nonces: NonceStore;
  readonly #options: ResolvedTransactionOptions;
  readonly #lanes: Lanes;
  readonly #single: SingleRun<Tx>;
  readonly #keepStep: StoreStep;
  readonly #undoStep: StoreStep;
  readonly #repeatStep: StoreStep;
  #running = 0;
  #draining = false;

  constructor(
    { transactions: store, nonces }: Pick<TransactionStores<Tx>, "transactions" | "nonces">,
    options: ResolvedTransactionOptions,
    /** The receiver's name in traces. */
    factory: string = "transaction",
  ) {
    this.#store = store;
    this.#nonces = nonces;
    this.#options = options;
    this.#lanes = new Lanes(options.maxWaiters, factory);
    this.#single = new SingleRun(store, options);
    const { engine } = store;
    const { transactionTimeoutMs: timeoutMs } = options;
    // What was caused by the handler, or by others, is no fault of the store.
    const faultOf = outcomeOf(store, "conflict", "refused");
    this.#keepStep = { engine, step: "keep", timeoutMs, name: "the transaction's last step", faultOf };
    this.#undoStep = { engine, step: "undo", timeoutMs, name: "ROLLBACK TO the savepoint", faultOf };
    this.#repeatStep = { engine, step: "repeat", timeoutMs, name: "the pause after a conflict" };
  }

  /**
   * Runs the steps in a transaction of their own, again after a conflict with others; resolves when it is committed. Rejects with a
   * GuardError when it could not be begun (503), did not end in time (503), or when nobody knows whether it was committed (503).
   */
  async run<T>(
    attempt: TransactionAttempt,
    steps: (open: OpenTransaction<Tx>) => Steps<T>,
  ): Promise<T | NotRun> {
    if (this.#draining) throw keysDraining(this.#options.retryAfterSeconds);
    this.#running += 1;
    try {
      const entrance = await this.#enter(attempt);
      if (entrance === "timeout") return "in-flight";
      if (entrance === "client-left") return entrance;
      try {
        return await this.#inTime(attempt, steps);
      } finally {
        entrance();
      }
    } finally {
      this.#running -= 1;
    }
  }

  /**
   * Does a handler's work behind the savepoint of these keys: keeps it, or undoes it and frees the keys when it throws. `more`: another
   * savepoint follows. Faults of the transaction itself are thrown on; a lost line is one when the savepoint cannot be reached.
   */
  *behindSavepoint<T>(
    tx: Tx,
    keys: readonly TransactionKey[],
    more: boolean,
    work: () => Steps<T>,
  ): Steps<Behind<T>> {
    try {
      const value = yield* untilPromise(work, () => this.#store.outlived?.(tx, keys));
      yield* answerOf(askStore(this.#keepStep, () => this.#store.keep(tx, keys, more)));
      return { value };
    } catch (error) {
      const fault = this.#store.faultOf(error);
      // It looks like a lost line, also where the handler has called somebody else who was away: the savepoint knows.
      const mayBeLost = fault === "unavailable" && !this.isSynchronous;
      if (fault !== undefined && fault !== "refused" && !mayBeLost) throw error;
      try {
        // Until the library knows of its lost line, some send statements to the line that takes its place.
        if (mayBeLost) yield* answerOf(setImmediate());
        yield* answerOf(askStore(this.#undoStep, () => this.#store.undo(tx, keys, more)));
      } catch (undoing) {
        if (mayBeLost && this.#store.faultOf(undoing) !== "refused") throw error;
        // The whole transaction is over, and nothing of it stays.
        throw new RolledBack(error);
      }
      return { error };
    }
  }

  /** Does a handler's work. With `tell`, two statements more find out whether it has written a row, where the engine knows. */
  *counted<T>(tx: Tx, work: () => Steps<T>, tell?: (hasWritten: boolean) => void): Steps<T> {
    if (tell === undefined) return yield* work();
    const before = yield* this.#written(tx);
    const value = yield* work();
    const after = yield* this.#written(tx);
    if (before !== undefined && after !== undefined) tell(after > before);
    return value;
  }

  /** What the library refuses here, it refuses at the handler's last step, whose answer it is. */
  *#written(tx: Tx): Steps<number | undefined> {
    try {
      return yield* answerOf(this.#store.written?.(tx));
    } catch (error) {
      if (this.#store.faultOf(error) === "conflict") throw error;
      return undefined;
    }
  }

  /** Does a step of our own as the transaction's last one. When it fails, nothing commits (503). */
  *lastStep(step: () => Awaitable<void>): Steps<void> {
    try {
      yield* answerOf(step());
    } catch (error) {
      const fault = this.#store.faultOf(error);
      const isOver = fault !== undefined && fault !== "refused";
      throw isOver ? error : storeUnavailable(error, this.#options.retryAfterSeconds);
    }
  }

  /** Frees keys that were begun and whose handlers did not run. */
  *giveBack(tx: Tx, keys: readonly TransactionKey[]): Steps<void> {
    yield* answerOf(askStore(this.#undoStep, () => this.#store.undo(tx, keys, false)));
  }

  /** Whether the handlers have to end in the turn in which they begin. */
  get isSynchronous(): boolean {
    return this.#store.mode === "sync";
  }

  /** Begins nothing any more, and waits for what runs; resolves to how many still run after `timeoutMs`. */
  async drain(timeoutMs: number): Promise<number> {
    this.#draining = true;
    const endsAtMs = performance.now() + timeoutMs;
    while (this.#running > 0 && performance.now() < endsAtMs) {
      // oxlint-disable-next-line no-await-in-loop -- polling, for a few seconds at the end of a process
      await sleep(20);
    }
    return this.#running;
  }

  /** Without keys there are no duplicates to wait for. */
  async #enter({ keys, left }: TransactionAttempt): Promise<Entrance> {
    const [first] = keys;
    return first === undefined
      ? () => {}
      : this.#lanes.enter(laneOf(keys, first), this.#options.waitMs, left);
  }

  /**
   * Waits for the end within `transactionTimeoutMs`. What comes later finds nobody, and sends no COMMIT: neither a handler nor a line that
   * never answers keeps its request, its lane or drain().
   */
  async #inTime<T>(
    attempt: TransactionAttempt,
    steps: (open: OpenTransaction<Tx>) => Steps<T>,
  ): Promise<T | NotRun> {
    const { transactionTimeoutMs, retryAfterSeconds } = this.#options;
    const progress: Progress = { begun: false, committing: false, abandoned: false };
    return await withDeadline(this.#untilEnded(attempt, steps, progress), transactionTimeoutMs, () => {
      progress.abandoned = true;
      const cause = new Error(`the transaction took longer than ${transactionTimeoutMs} ms`);
      if (progress.committing) return commitUnknown(cause, retryAfterSeconds);
      return progress.begun
        ? transactionTimedOut(cause, retryAfterSeconds)
        : transactionUnavailable(cause, retryAfterSeconds);
    });
  }

  async #untilEnded<T>(
    attempt: TransactionAttempt,
    steps: (open: OpenTransaction<Tx>) => Steps<T>,
    progress: Progress,
  ): Promise<T | NotRun> {
    try {
      return await this.#repeat(attempt, steps, progress);
    } catch (error) {
      if (!(error instanceof RolledBack) || progress.abandoned) throw error;
      progress.committing = false;
      throw await this.#afterRollback(attempt, error.cause);
    }
  }

  async #repeat<T>(
    attempt: TransactionAttempt,
    steps: (open: OpenTransaction<Tx>) => Steps<T>,
    progress: Progress,
  ): Promise<T | NotRun> {
    const { retryAfterSeconds } = this.#options;
    for (let number = 1; ; number += 1) {
      progress.begun = false;
      progress.committing = false;
      try {
        // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
        return await this.#single.run(attempt, steps, progress);
      } catch (error) {
        if (error === nonceSeen) return "nonce-seen";
        if (error instanceof RolledBack) throw error;
        const fault = this.#store.faultOf(error);
        if (progress.abandoned) throw transactionUnavailable(error, retryAfterSeconds);
        if (fault === "conflict" && number < maxAttempts) {
          // oxlint-disable-next-line no-await-in-loop -- as above
          await askStore(this.#repeatStep, () =>
            sleep(Math.random() * Math.min(2 ** number, longestPauseMs)),
          );
          continue;
        }
        if (fault === "locked" && !progress.begun) return "in-flight";
        if (fault === "conflict" || fault === "locked") throw transactionConflict(error, retryAfterSeconds);
        if (progress.committing) {
          const isRolledBack = fault === "refused" || isTransactionBroken(error);
          throw isRolledBack ? new RolledBack(error) : commitUnknown(error, retryAfterSeconds);
        }
        if (fault === "unavailable") throw transactionUnavailable(error, retryAfterSeconds);
        // Such as a promise where the engine has none.
        if (progress.begun) throw new RolledBack(error);
        // A mistake of the app's, such as a pool in place of a transaction, stays what it is.
        if (error instanceof TypeError) throw error;
        throw transactionUnavailable(error, retryAfterSeconds);
      }
    }
  }

  /**
   * After a rollback that took the nonce with it: what to throw for the handler's `error`. Nobody is refused for good while a replay may
   * still be paid.
   */
  async #afterRollback({ nonce }: TransactionAttempt, error: unknown): Promise<unknown> {
    if (nonce === undefined || (await this.#claimAlone(nonce))) return error;
    const isRefusal = isGuardError(error) && error.status < 500;
    return isRefusal ? transactionUnavailable(error, this.#options.retryAfterSeconds) : error;
  }

  async #claimAlone(nonce: NonceClaim): Promise<boolean> {
    const { engine } = this.#nonces;
    const { storeTimeoutMs: timeoutMs } = this.#options;
    const asked = { engine, step: "claim-nonce", timeoutMs, name: "the nonce store" };
    try {
      return (await askStore(asked, () => this.#nonces.claim(nonce))) === "fresh";
    } catch {
      return false;
    }
  }
}

/** A handler's error after which the whole transaction was rolled back. */
class RolledBack extends Error {
  constructor(cause: unknown) {
    super("the transaction was rolled back", { cause });
  }
}

function laneOf(keys: readonly TransactionKey[], first: TransactionKey): string {
  return keys.reduce((least, { key }) => (key < least ? key : least), first.key);
}
