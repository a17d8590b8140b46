import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { isGuardError, withDeadline, type NonceClaim, type NonceStore } from "@countersign/core";
import { askStore, workSlices } from "@countersign/core/door";
import {
  commitUnknown,
  keysDraining,
  storeUnavailable,
  transactionConflict,
  transactionUnavailable,
} from "../refusals.ts";
import type { Awaitable } from "../store.ts";
import { Lanes, type Entrance } from "./lanes.ts";
import { answerOf, runSteps, runStepsNow, untilPromise, type Steps } from "./steps.ts";
import type { Behind, NotRun, OpenTransaction, TransactionAttempt } from "./transaction-attempt.ts";
import type { ResolvedTransactionOptions } from "./transaction-options.ts";
import type {
  TransactionClaim,
  TransactionKey,
  TransactionStore,
  TransactionStores,
} from "./transaction-store.ts";

// Four were too few where many transactions meet one page of an index.
const maxAttempts = 10;
const longestPauseMs = 200;

/** Runs handlers in transactions that claim their keys: the state table of decision 0069. */
export class Transactor<Tx> {
  readonly #store: TransactionStore<Tx>;
  readonly #nonces: NonceStore;
  readonly #options: ResolvedTransactionOptions;
  readonly #lanes: Lanes;
  readonly #beginStep: Parameters<typeof askStore>[0];
  #running = 0;
  #draining = false;

  constructor(
    { transactions: store, nonces }: Pick<TransactionStores<Tx>, "transactions" | "nonces">,
    options: ResolvedTransactionOptions,
  ) {
    this.#store = store;
    this.#nonces = nonces;
    this.#options = options;
    this.#lanes = new Lanes(options.maxWaiters);
    const timeoutMs = options.storeTimeoutMs + options.waitMs;
    this.#beginStep = {
      engine: store.engine,
      step: "begin",
      timeoutMs,
      name: "the transaction's first step",
    };
  }

  /**
   * Runs the steps in a transaction of their own, again after a conflict with others; resolves when it is committed. Rejects with a
   * GuardError when it could not be begun (503), or when nobody knows whether it was committed (503).
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
        return await this.#repeat(attempt, steps);
      } catch (error) {
        if (!(error instanceof RolledBack)) throw error;
        throw await this.#afterRollback(attempt, error.cause);
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
      yield* answerOf(this.#store.keep(tx, keys, more));
      return { value };
    } catch (error) {
      const fault = this.#store.faultOf(error);
      // It looks like a lost line, also where the handler has called somebody else who was away: the savepoint knows.
      const mayBeLost = fault === "unavailable" && !this.isSynchronous;
      if (fault !== undefined && fault !== "refused" && !mayBeLost) throw error;
      try {
        // Until the library knows of its lost line, some send statements to the line that takes its place.
        if (mayBeLost) yield* answerOf(setImmediate());
        yield* answerOf(this.#store.undo(tx, keys, more));
      } catch (undoing) {
        if (mayBeLost && this.#store.faultOf(undoing) !== "refused") throw error;
        // The whole transaction is over, and nothing of it stays.
        throw new RolledBack(error);
      }
      return { error };
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
    yield* answerOf(this.#store.undo(tx, keys, false));
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

  async #repeat<T>(
    attempt: TransactionAttempt,
    steps: (open: OpenTransaction<Tx>) => Steps<T>,
  ): Promise<T | NotRun> {
    const { retryAfterSeconds } = this.#options;
    for (let number = 1; ; number += 1) {
      const progress: Progress = { begun: false, committing: false, abandoned: false };
      try {
        // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
        return await this.#runOnce(attempt, steps, progress);
      } catch (error) {
        if (error === nonceSeen) return "nonce-seen";
        if (error instanceof RolledBack) throw error;
        const fault = this.#store.faultOf(error);
        if (fault === "conflict" && number < maxAttempts) {
          // oxlint-disable-next-line no-await-in-loop -- as above
          await sleep(Math.random() * Math.min(2 ** number, longestPauseMs));
          continue;
        }
        if (fault === "locked" && !progress.begun) return "in-flight";
        if (fault === "conflict" || fault === "locked") throw transactionConflict(error, retryAfterSeconds);
        if (progress.committing) {
          throw fault === "refused" ? new RolledBack(error) : commitUnknown(error, retryAfterSeconds);
        }
        if (fault === "unavailable" || progress.abandoned)
          throw transactionUnavailable(error, retryAfterSeconds);
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
    try {
      return (await this.#nonces.claim(nonce)) === "fresh";
    } catch {
      return false;
    }
  }

  async #runOnce<T>(
    attempt: TransactionAttempt,
    steps: (open: OpenTransaction<Tx>) => Steps<T>,
    progress: Progress,
  ): Promise<T> {
    const store = this.#store;
    const [start, started] = gate();
    const run = <R>(all: Steps<R>): R | Promise<R> =>
      store.mode === "sync" ? runStepsNow(all) : runSteps(all);
    while (attempt.isBackground === true && this.isSynchronous && workSlices.over) {
      // oxlint-disable-next-line no-await-in-loop -- yields to the event loop
      await workSlices.next();
    }
    const ran = store.run((tx) => run(this.#inTransaction(tx, { attempt, steps, progress, started })));
    // oxlint-disable-next-line promise/prefer-await-to-then -- also when nothing began
    ran.then(started, started);
    try {
      await withDeadline(start, this.#beginStep.timeoutMs, () => new Error("no transaction began in time"));
    } catch (error) {
      // What comes late finds no handler any more.
      progress.abandoned = true;
      throw error;
    }
    return await ran;
  }

  *#inTransaction<T>(tx: Tx, { attempt, steps, progress, started }: Running<Tx, T>): Steps<T> {
    const store = this.#store;
    const { waitMs, idleTimeoutMs, recovery } = this.#options;
    const { nonce, keys, req } = attempt;
    // 0 means "for ever" to some engines.
    const claim: TransactionClaim = { nonce, keys, recovery, waitMs: Math.max(waitMs, 1), idleTimeoutMs };
    if (progress.abandoned) throw new Error("the transaction began too late");
    const begun = yield* answerOf(askStore(this.#beginStep, () => store.begin(tx, claim), req));
    if (progress.abandoned) throw new Error("the transaction began too late");
    progress.begun = true;
    started();
    // The nonce is another request's: nothing of this transaction may stay.
    if (begun.nonce !== "fresh") throw nonceSeen;
    const result = yield* steps({ tx, begun });
    progress.committing = true;
    return result;
  }
}

interface Progress {
  begun: boolean;
  committing: boolean;
  abandoned: boolean;
}

interface Running<Tx, T> {
  readonly attempt: TransactionAttempt;
  readonly steps: (open: OpenTransaction<Tx>) => Steps<T>;
  readonly progress: Progress;
  readonly started: () => void;
}

function gate(): readonly [opened: Promise<void>, open: () => void] {
  let open: (() => void) | undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return [opened, () => open?.()];
}

const nonceSeen = new Error("the nonce was used before");

/** A handler's error after which the whole transaction was rolled back. */
class RolledBack extends Error {
  constructor(cause: unknown) {
    super("the transaction was rolled back", { cause });
  }
}

function laneOf(keys: readonly TransactionKey[], first: TransactionKey): string {
  return keys.reduce((least, { key }) => (key < least ? key : least), first.key);
}
