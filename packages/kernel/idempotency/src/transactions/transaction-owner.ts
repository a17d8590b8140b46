import { randomUUID } from "node:crypto";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import {
  isGuardError,
  withDeadline,
  type GuardError,
  type NonceClaim,
  type NonceStore,
} from "@countersign/core";
import { askStore, type StoreStep } from "@countersign/core/internal";
import {
  commitUnknown,
  isNotRolledBack,
  isTransactionBroken,
  keysDraining,
  nothingWritten,
  nothingWrittenReason,
  storeUnavailable,
  transactionBroken,
  transactionConflict,
  transactionHeld,
  transactionTimedOut,
  transactionUnavailable,
  transactionUnknown,
} from "../refusals.ts";
import { brokenReason } from "../life.ts";
import { alarm, noticeForOperator } from "../notices.ts";
import { perform, type Performed, type WaitingRules } from "../perform.ts";
import type { Awaitable } from "../store.ts";
import { WaitingRoom } from "../waiting.ts";
import { Progress } from "./progress.ts";
import { nonceSeen, SingleRun } from "./single-run.ts";
import { answerOf, outcomeOf, untilPromise, type Steps } from "./steps.ts";
import type { OpenTransaction, TransactionAttempt } from "./transaction-attempt.ts";
import type { ResolvedTransactionOptions } from "./transaction-options.ts";
import type { ClosedStatements } from "./statement-gate.ts";
import type { TransactionKey, TransactionStore, TransactionStores } from "./transaction-store.ts";

// Four were too few where many transactions meet one page of an index.
const maxAttempts = 10;
const longestPauseMs = 200;

/** Runs handlers in transactions that claim their keys: site/pages/concepts/transactions.md says what becomes of a key and a nonce. */
export class TransactionOwner<Tx> {
  readonly #store: TransactionStore<Tx>;
  readonly #nonces: NonceStore;
  readonly #options: ResolvedTransactionOptions;
  readonly #factory: string;
  readonly #waiting: WaitingRules;
  readonly #single: SingleRun<Tx>;
  readonly #keepStep: StoreStep;
  readonly #probeStep: StoreStep;
  readonly #freeStep: StoreStep;
  readonly #lookStep: StoreStep;
  readonly #repeatStep: StoreStep;
  #running = 0;
  #draining = false;

  constructor(
    { transactions: store, nonces }: Pick<TransactionStores<Tx>, "transactions" | "nonces">,
    options: ResolvedTransactionOptions,
    /** The receiver's name in traces and notices. */
    factory: string = "transaction",
  ) {
    this.#store = store;
    this.#nonces = nonces;
    this.#options = options;
    this.#factory = factory;
    const { waitMs, maxWaiters } = options;
    // The claim waits in the database for transactions of other processes.
    this.#waiting = { room: new WaitingRoom(factory, maxWaiters), waitMs };
    this.#single = new SingleRun(store, options);
    const { engine } = store;
    const { transactionTimeoutMs: timeoutMs } = options;
    // What was caused by the handler, or by others, is no fault of the store.
    const faultOf = outcomeOf(store, "conflict", "refused");
    this.#keepStep = { engine, step: "keep", timeoutMs, name: "the transaction's last step", faultOf };
    this.#probeStep = { engine, step: "probe", timeoutMs, name: "the look at a failed transaction", faultOf };
    this.#freeStep = { engine, step: "free", timeoutMs, name: "the keys that were given back", faultOf };
    this.#lookStep = { engine, step: "hold", timeoutMs, name: "the look after a rollback", faultOf };
    this.#repeatStep = { engine, step: "repeat", timeoutMs, name: "the pause after a conflict" };
  }

  /**
   * Owns the keys of an attempt by a transaction of their own, in which it runs the steps, again after a conflict with others; resolves when
   * that is committed. Rejects with a GuardError when it could not be begun (503), did not end in time (503), or when nobody knows whether it
   * was committed (503).
   */
  async perform<T>(
    attempt: TransactionAttempt,
    steps: (open: OpenTransaction<Tx>) => Steps<T>,
  ): Promise<Performed<T>> {
    this.#assertNotDraining();
    // Before the first await: a drain that begins now waits for this attempt.
    this.#running += 1;
    try {
      return await perform(attempt, this.#waiting, async () => {
        this.#assertNotDraining();
        return await this.#inTime(attempt, steps);
      });
    } finally {
      this.#running -= 1;
    }
  }

  #assertNotDraining(): void {
    if (this.#draining) throw keysDraining(this.#options.retryAfterSeconds);
  }

  /**
   * Runs a handler of these keys in their open transaction, and keeps what it wrote. From the moment in which it has settled no statement of its
   * `tx` takes effect (I26). Throws a {@link RollBack} when it fails: nothing is rolled back to a savepoint, the transaction ends as a whole.
   */
  *handle<T>(
    { tx, progress }: Pick<OpenTransaction<Tx>, "tx" | "progress">,
    keys: readonly TransactionKey[],
    { more = false, tell, after }: HandlerRun,
    work: () => Steps<T>,
  ): Steps<T> {
    const store = this.#store;
    let value: T;
    try {
      let closed: ClosedStatements | undefined;
      [value, closed] = yield* this.#throughGate(tx, () =>
        progress.handling(() => untilPromise(work, () => store.outlived?.(tx, keys))),
      );
      if (tell !== undefined)
        tell(closed?.hasWritten === true || (yield* this.#hasWritten(tx, keys, closed)));
      if (after !== undefined) yield* this.#throughGate(tx, after);
    } catch (error) {
      throw yield* this.#afterFailure(tx, keys, error);
    }
    yield* answerOf(askStore(this.#keepStep, () => store.keep(tx, keys, more)));
    return value;
  }

  /** Opens `tx` for the work, and closes it when that has settled. A statement without an answer by then makes it a failure. */
  *#throughGate<T>(
    tx: Tx,
    work: () => Steps<T>,
  ): Steps<readonly [value: T, closed: ClosedStatements | undefined]> {
    this.#store.openGate?.(tx);
    const value = yield* work();
    const closed = yield* answerOf(this.#store.closeGate?.(tx, true));
    if (closed !== undefined && closed.unanswered > 0) throw unsettled(closed.unanswered);
    return [value, closed];
  }

  /** What to throw for a handler's error, once no statement of it is on its way any more. */
  *#afterFailure(tx: Tx, keys: readonly TransactionKey[], error: unknown): Steps<unknown> {
    const store = this.#store;
    yield* answerOf(store.closeGate?.(tx, false));
    const fault = store.faultOf(error);
    if (fault === "conflict" || fault === "locked") return error;
    // Until a library has noticed that its connection is lost, it could send the look on the connection that takes its place.
    if (fault === "unavailable" && !this.isSynchronous) yield* answerOf(setImmediate());
    try {
      yield* answerOf(askStore(this.#probeStep, () => store.assertOpen(tx, keys)));
    } catch (ended) {
      if (isTransactionBroken(ended)) return new RollBack(ended);
      // The handler's own error may be of somebody else who was away: the transaction tells whose connection was lost.
      return fault === "unavailable" ? error : new RollBack(error);
    }
    return new RollBack(error);
  }

  /** Asks the engine, which counts what no driver reports: rows that a function has written, or a statement inside of a SELECT. */
  *#hasWritten(
    tx: Tx,
    keys: readonly TransactionKey[],
    closed: ClosedStatements | undefined,
  ): Steps<boolean> {
    try {
      const written = (yield* answerOf(this.#store.written?.(tx, keys))) ?? 0;
      return written > (closed?.idleCommands ?? 0);
    } catch (error) {
      if (this.#store.faultOf(error) === "conflict") throw error;
      // keep() says what the handler has swallowed.
      return true;
    }
  }

  /** Does a step of our own as the transaction's last one. When it fails, nothing commits (503). */
  *lastStep<T>(step: () => Awaitable<T>): Steps<T> {
    try {
      return yield* answerOf(step());
    } catch (error) {
      const fault = this.#store.faultOf(error);
      const isOver = fault !== undefined && fault !== "refused";
      throw isOver ? error : storeUnavailable(error, this.#options.retryAfterSeconds);
    }
  }

  /**
   * Commits keys as held whose handler has changed no row by its `tx` (I28): what it wrote by another connection may have committed. In the
   * transaction itself: after a rollback a waiting duplicate could run the handler again. Returns the error for the caller (503).
   */
  *holdUnwritten(tx: Tx, keys: readonly TransactionKey[]): Steps<Error> {
    const held = yield* this.lastStep(() => this.#store.hold(keys, nothingWrittenReason, tx));
    if (held.size < keys.length)
      throw new RollBack(new Error("the server did not hold the key; look for triggers"));
    return nothingWritten(this.#options.retryAfterSeconds);
  }

  /** Frees keys that were begun and whose handlers did not run. */
  *giveBack(tx: Tx, keys: readonly TransactionKey[]): Steps<void> {
    yield* answerOf(askStore(this.#freeStep, () => this.#store.free(tx, keys)));
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

  /**
   * Waits for the end within `transactionTimeoutMs`. What comes later finds nobody, and sends no COMMIT: neither a handler nor a line that
   * never answers keeps its request, its turn or drain().
   */
  async #inTime<T>(
    attempt: TransactionAttempt,
    steps: (open: OpenTransaction<Tx>) => Steps<T>,
  ): Promise<Performed<T>> {
    const { transactionTimeoutMs } = this.#options;
    const progress = new Progress();
    const run = this.#repeat(attempt, steps, progress);
    return await withDeadline(run, transactionTimeoutMs, () => {
      progress.abandon();
      const late = this.#lateError(progress);
      run.catch((error: unknown) => this.#alarmOfLate(attempt, error, late));
      return late;
    });
  }

  #lateError(progress: Progress): GuardError {
    const { transactionTimeoutMs, retryAfterSeconds } = this.#options;
    const cause = new Error(`the transaction took longer than ${transactionTimeoutMs} ms`);
    if (progress.looking) return transactionUnknown(cause, retryAfterSeconds);
    if (progress.committing) return commitUnknown(cause, retryAfterSeconds);
    return progress.begun
      ? transactionTimedOut(cause, retryAfterSeconds)
      : transactionUnavailable(cause, retryAfterSeconds);
  }

  /** The caller was `told` before that its time was over: of what has committed all the same, only an operator can hear. */
  #alarmOfLate({ keys, req }: TransactionAttempt, error: unknown, told: GuardError): void {
    const end = noticeForOperator(error);
    if (end === undefined || end.code === told.code) return;
    for (const { key } of keys) alarm(this.#factory, { ...end, key, req });
  }

  /**
   * Runs the steps, again after a conflict, each time with tokens that no other run has. What is asked of an error, and in which order: has
   * the handler failed; is the time over; is it a conflict, of which nothing has committed; did it come behind COMMIT, whose outcome is then
   * in doubt unless the engine has said no. What is left has sent nothing that could commit.
   */
  async #repeat<T>(
    attempt: TransactionAttempt,
    steps: (open: OpenTransaction<Tx>) => Steps<T>,
    progress: Progress,
  ): Promise<Performed<T>> {
    const { retryAfterSeconds } = this.#options;
    for (let number = 1; ; number += 1) {
      progress.begun = false;
      progress.committing = false;
      const run = number === 1 ? attempt : withNewTokens(attempt);
      try {
        // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
        return { status: "ended", result: await this.#single.run(run, steps, progress) };
      } catch (error) {
        if (error === nonceSeen) {
          // Behind a conflict it may be this request's own, of a run that something has committed: never a final 401.
          if (number > 1) throw transactionUnavailable(error, retryAfterSeconds);
          return { status: "nonce-seen" };
        }
        const fault = this.#store.faultOf(error);
        if (error instanceof RollBack) {
          // oxlint-disable-next-line no-await-in-loop -- the last step
          throw await this.#afterRollback(run, error.cause, progress);
        }
        if (progress.abandoned) {
          const given = transactionUnavailable(error, retryAfterSeconds);
          // Where nothing was begun no handler has run. Behind COMMIT a done key may be what was paid: nobody may hold it.
          const mayHaveEnded = progress.begun && !progress.committing;
          // oxlint-disable-next-line no-await-in-loop -- the last step
          throw mayHaveEnded ? await this.#afterRollback(run, given, progress) : given;
        }
        if ((fault === "conflict" || fault === "locked") && progress.begun) {
          // oxlint-disable-next-line no-await-in-loop -- before another run can take a record of this one for somebody else's
          await this.#assertNothingCommitted(run, error, progress);
        }
        if (fault === "conflict" && number < maxAttempts) {
          // oxlint-disable-next-line no-await-in-loop -- as above
          await askStore(this.#repeatStep, () =>
            sleep(Math.random() * Math.min(2 ** number, longestPauseMs)),
          );
          continue;
        }
        if (fault === "locked" && !progress.begun) return { status: "in-flight" };
        if (fault === "conflict" || fault === "locked") throw transactionConflict(error, retryAfterSeconds);
        if (progress.committing) {
          const isRollBack = fault === "refused" || isTransactionBroken(error);
          if (!isRollBack) throw commitUnknown(error, retryAfterSeconds);
          // oxlint-disable-next-line no-await-in-loop -- the last step
          throw await this.#afterRollback(run, error, progress);
        }
        if (fault === "unavailable") throw transactionUnavailable(error, retryAfterSeconds);
        // Such as a promise where the engine has none.
        // oxlint-disable-next-line no-await-in-loop -- the last step
        if (progress.begun) throw await this.#afterRollback(run, error, progress);
        // A mistake of the app's, such as a pool in place of a transaction, stays what it is.
        if (error instanceof TypeError) throw error;
        throw transactionUnavailable(error, retryAfterSeconds);
      }
    }
  }

  /**
   * After a rollback that took the nonce with it: what to throw for the handler's `error`. Nobody is refused for good while a replay may
   * still be paid (I18), or when something of the run has committed all the same (I27): its own COMMIT, or a statement that commits by itself.
   * Without an answer of the store it may have: then no error leaves as itself.
   */
  async #afterRollback(
    { nonce, keys }: TransactionAttempt,
    error: unknown,
    progress: Progress,
  ): Promise<unknown> {
    const { retryAfterSeconds } = this.#options;
    progress.looking = true;
    const isFinalRefusal = isGuardError(error) && error.status < 500;
    // Why the refusal may not leave: a replay has the nonce, or nobody knows whether one has.
    let whyNonceIsUncertain: unknown;
    try {
      // It waits for the end of a transaction whose connection was lost. With a token of its own: the run's nonce would count as fresh.
      if (nonce !== undefined && !(await this.#claimAlone({ ...nonce, token: randomUUID() }))) {
        whyNonceIsUncertain = error;
      }
    } catch (failure) {
      whyNonceIsUncertain = new AggregateError(
        [error, failure],
        "the nonce could not be claimed after the rollback",
      );
    }
    let committed: ReadonlySet<string>;
    try {
      committed = await this.#committedOf(keys);
    } catch (failure) {
      return unknownAfter(error, failure, retryAfterSeconds);
    }
    // What says itself that the key is held: a broken transaction, or a promise where the engine allows none.
    const namesTheHold = isTransactionBroken(error) || (this.isSynchronous && error instanceof TypeError);
    if ((committed.size > 0 && !namesTheHold) || isNotRolledBack(error))
      return transactionHeld(error, retryAfterSeconds);
    return isFinalRefusal && whyNonceIsUncertain !== undefined
      ? transactionUnavailable(whyNonceIsUncertain, retryAfterSeconds)
      : error;
  }

  /** Throws a GuardError (503) when a run that met a conflict has committed something: it must not be repeated. */
  async #assertNothingCommitted(
    { keys }: TransactionAttempt,
    error: unknown,
    progress: Progress,
  ): Promise<void> {
    const { retryAfterSeconds } = this.#options;
    progress.looking = true;
    let committed: ReadonlySet<string>;
    try {
      committed = await this.#committedOf(keys);
    } catch (failure) {
      throw unknownAfter(error, failure, retryAfterSeconds);
    }
    if (committed.size > 0) throw transactionHeld(error, retryAfterSeconds);
    progress.looking = false;
  }

  /** The keys of which something has committed all the same: held by now, or done. */
  async #committedOf(keys: readonly TransactionKey[]): Promise<ReadonlySet<string>> {
    if (keys.length === 0) return new Set();
    return askStore(this.#lookStep, () => this.#store.hold(keys, brokenReason));
  }

  async #claimAlone(nonce: NonceClaim): Promise<boolean> {
    const { engine } = this.#nonces;
    const { storeTimeoutMs: timeoutMs } = this.#options;
    const asked = { engine, step: "claim-nonce", timeoutMs, name: "the nonce store" };
    return (await askStore(asked, () => this.#nonces.claim(nonce))) === "fresh";
  }
}

/** How a handler is run. */
interface HandlerRun {
  /** Whether another handler follows in this transaction. Default false. */
  readonly more?: boolean | undefined;
  /** Called with whether it has changed a row. */
  readonly tell?: ((hasWritten: boolean) => void) | undefined;
  /** What the caller itself writes by `tx` after the handler. */
  readonly after?: (() => Steps<unknown>) | undefined;
}

/** Thrown with a handler's error as its cause, so that the store rolls the whole transaction back. */
class RollBack extends Error {
  constructor(cause: unknown) {
    super("the transaction was rolled back", { cause });
  }
}

/** The refusal when the look after a rollback has failed: something of the run may have committed (I27). */
function unknownAfter(error: unknown, failure: unknown, retryAfterSeconds: number): Error {
  const message = "the store did not answer the look after the rollback";
  return transactionUnknown(new AggregateError([error, failure], message), retryAfterSeconds);
}

/** A statement that is on its way when the handler has settled could commit after a failure, and fail after a success. */
function unsettled(count: number): Error {
  const statements = count === 1 ? "a statement was" : `${count} statements were`;
  return transactionBroken(
    `${statements} still on the way when the handler had settled; await every statement`,
  );
}

/** A repeat must not take what its former run has committed for its own. */
function withNewTokens(attempt: TransactionAttempt): TransactionAttempt {
  const { keys, nonce } = attempt;
  return {
    ...attempt,
    keys: keys.map(({ key, fingerprint }) => ({ key, fingerprint, token: randomUUID() })),
    nonce: nonce && { ...nonce, token: randomUUID() },
  };
}
