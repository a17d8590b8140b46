import { withDeadline } from "@countersign/core";
import { askStore, isPromiseLike, workSlices, type StoreStep } from "@countersign/core/internal";
import type { Awaitable } from "../store.ts";
import { isTransactionBroken } from "../refusals.ts";
import type { OpenTransaction, TransactionAttempt } from "./transaction-attempt.ts";
import type { ResolvedTransactionOptions } from "./transaction-options.ts";
import type {
  TransactionClaim,
  TransactionFault,
  TransactionMode,
  TransactionStore,
} from "./transaction-store.ts";

/** Steps that run with promises or without: `yield*` each answer through {@link answerOf}. */
export type Steps<T> = Generator<unknown, T, never>;

/** Awaits an answer in asynchronous steps; in synchronous ones it must be no promise. */
export function* answerOf<T>(answer: Awaitable<T>): Generator<Awaitable<T>, T, T> {
  return yield answer;
}

/** Runs steps across promises. Rejects at the first answer after `isGivenUp`: after that not even a catch or finally block of the steps runs. */
export async function runSteps<T>(steps: Steps<T>, isGivenUp: () => boolean = never): Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    let resume: () => IteratorResult<unknown, T>;
    try {
      // oxlint-disable-next-line no-await-in-loop -- one step after the other
      const answer = await step.value;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- answerOf() gives each answer the type of its own yield
      resume = () => steps.next(answer as never);
    } catch (error) {
      resume = () => steps.throw(error);
    }
    if (isGivenUp()) throw new Error("the steps were given up before they had ended");
    step = resume();
  }
  return step.value;
}

function never(): boolean {
  return false;
}

/** Runs `work`; calls `outlived`, which must not throw, when {@link runStepsNow} ended it at a promise. */
export function* untilPromise<T>(work: () => Steps<T>, outlived: () => void): Steps<T> {
  let isEnded = false;
  try {
    const value = yield* work();
    isEnded = true;
    return value;
  } catch (error) {
    isEnded = true;
    throw error;
  } finally {
    if (!isEnded) outlived();
  }
}

/**
 * Runs steps in one turn. At a promise they end, and it is the result: whoever opened the transaction has to refuse it. Thrown back into the
 * steps it would be a handler's error that frees the key, while the handler still writes.
 */
export function runStepsNow<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (step.done !== true) {
    const answer: unknown = step.value;
    if (isPromiseLike(answer)) {
      // Its rejection is nobody's any more, and would end the process.
      answer.then(undefined, () => {});
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- for the store alone, which throws
      steps.return(answer as never);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
      return answer as never;
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
    step = steps.next(answer as never);
  }
  return step.value;
}

/** Runs steps as a store of this mode does: with promises, or in one turn. */
export function runStepsIn<T>(mode: "sync", steps: Steps<T>): T;
export function runStepsIn<T>(mode: "async", steps: Steps<T>): Promise<T>;
export function runStepsIn<T>(mode: TransactionMode, steps: Steps<T>): T | Promise<T>;
export function runStepsIn<T>(mode: TransactionMode, steps: Steps<T>): T | Promise<T> {
  return mode === "sync" ? runStepsNow(steps) : runSteps(steps);
}

/** The outcome on `countersign:store` of what others or the handler have caused: one of these, no fault of the store. */
export function outcomeOf(
  store: Pick<TransactionStore<never>, "faultOf">,
  ...outcomes: readonly TransactionFault[]
): (error: unknown) => string | undefined {
  return (error) => {
    const isOf = isTransactionBroken(error) ? "refused" : store.faultOf(error);
    return outcomes.find((fault) => fault === isOf);
  };
}

/** How far a request has come in its present transaction. */
export class Progress {
  begun = false;
  /** COMMIT may have been sent. */
  committing = false;
  /** The transaction was rolled back, and the store has not yet said whether something of it has committed. */
  looking = false;
  #abandoned = false;
  #close: (() => void) | undefined;

  /** Nobody waits for the request any more: it sends no COMMIT. */
  get abandoned(): boolean {
    return this.#abandoned;
  }

  /** `close` rejects the handler's later statements. */
  opened(close: () => void): void {
    this.#close = close;
    if (this.#abandoned) close();
  }

  /** Gives the run up (I26): its handler may go on, and none of its statements takes effect. */
  abandon(): void {
    this.#abandoned = true;
    this.#close?.();
  }
}

/** What a run is rejected with when its nonce is another request's: nothing of the transaction may stay. */
export const nonceSeen = new Error("the nonce was used before");

/** Runs a handler's steps once, between BEGIN and COMMIT. */
export class SingleRun<Tx> {
  readonly #store: TransactionStore<Tx>;
  readonly #options: ResolvedTransactionOptions;
  readonly #beginStep: StoreStep;
  readonly #commitStep: StoreStep;

  constructor(store: TransactionStore<Tx>, options: ResolvedTransactionOptions) {
    this.#store = store;
    this.#options = options;
    const { engine } = store;
    this.#beginStep = {
      engine,
      step: "begin",
      timeoutMs: options.storeTimeoutMs + options.waitMs,
      name: "the transaction's first step",
      faultOf: outcomeOf(store, "conflict", "locked"),
    };
    this.#commitStep = {
      engine,
      step: "commit",
      timeoutMs: options.transactionTimeoutMs,
      name: "COMMIT",
      faultOf: outcomeOf(store, "conflict", "refused"),
    };
  }

  /** Resolves when it is committed. Rejects with {@link nonceSeen}, and with errors of the engine or the handler as they are. */
  async run<T>(
    attempt: TransactionAttempt,
    steps: (open: OpenTransaction<Tx>) => Steps<T>,
    progress: Progress,
  ): Promise<T> {
    const store = this.#store;
    const [start, started] = latch();
    const isGivenUp = (): boolean => progress.abandoned;
    const drive = <R>(all: Steps<R>): R | Promise<R> =>
      store.mode === "sync" ? runStepsNow(all) : runSteps(all, isGivenUp);
    while (attempt.isBackground === true && store.mode === "sync" && workSlices.over) {
      // oxlint-disable-next-line no-await-in-loop -- yields to the event loop
      await workSlices.next();
    }
    let commitTrace: Promise<unknown> | undefined;
    const committing = (): void => {
      progress.committing = true;
      commitTrace = this.#traceCommit(() => committed, attempt);
    };
    const context = { attempt, steps, progress, started, committing };
    const committed: Promise<T> = store.run((tx) => drive(this.#inTransaction(tx, context)));
    // oxlint-disable-next-line promise/prefer-await-to-then -- also when nothing began
    committed.then(started, started);
    try {
      await withDeadline(start, this.#beginStep.timeoutMs, () => new Error("no transaction began in time"));
    } catch (error) {
      // What comes late finds no handler any more.
      progress.abandon();
      throw error;
    }
    try {
      return await committed;
    } finally {
      // Its time counts for the request.
      await commitTrace;
    }
  }

  /** Traces COMMIT until `committed()` has settled. Does not reject. */
  async #traceCommit(committed: () => Promise<unknown>, { req }: TransactionAttempt): Promise<void> {
    // On SQLite run() is still under way.
    const ended = async (): Promise<unknown> => {
      await Promise.resolve();
      return committed();
    };
    try {
      await askStore(this.#commitStep, ended, req);
    } catch {
      // It is the run's own error.
    }
  }

  *#inTransaction<T>(tx: Tx, context: RunContext<Tx, T>): Steps<T> {
    const { attempt, steps, progress, started, committing } = context;
    const store = this.#store;
    const { waitMs, idleTimeoutMs, transactionTimeoutMs, recovery } = this.#options;
    const { nonce, keys, req } = attempt;
    // Twice the longest time of a transaction: none can commit after the lease of its key has ended.
    const leaseMs = 2 * transactionTimeoutMs;
    // 0 means "for ever" to some engines.
    const bounds = { leaseMs, waitMs: Math.max(waitMs, 1), idleTimeoutMs };
    const claim: TransactionClaim = { nonce, keys, recovery, ...bounds };
    if (progress.abandoned) throw new Error("the transaction began too late");
    const begun = yield* answerOf(askStore(this.#beginStep, () => store.begin(tx, claim), req));
    progress.begun = true;
    started();
    if (begun.nonce !== "fresh") throw nonceSeen;
    progress.opened(() => void store.closeGate?.(tx, false)?.catch(() => {}));
    const result = yield* steps({ tx, begun, keys });
    committing();
    return result;
  }
}

interface RunContext<Tx, T> {
  readonly attempt: TransactionAttempt;
  readonly steps: (open: OpenTransaction<Tx>) => Steps<T>;
  readonly progress: Progress;
  readonly started: () => void;
  readonly committing: () => void;
}

function latch(): readonly [opened: Promise<void>, open: () => void] {
  let open: (() => void) | undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return [opened, () => open?.()];
}
