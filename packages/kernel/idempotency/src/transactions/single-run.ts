import { withDeadline } from "@countersign/core";
import { askStore, workSlices, type StoreStep } from "@countersign/core/internal";
import type { Progress } from "./progress.ts";
import { answerOf, outcomeOf, runSteps, runStepsNow, type Steps } from "./steps.ts";
import type { OpenTransaction, TransactionAttempt } from "./transaction-attempt.ts";
import type { ResolvedTransactionOptions } from "./transaction-options.ts";
import type { TransactionClaim, TransactionStore } from "./transaction-store.ts";

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
      store.mode === "sync" ? runStepsNow(all) : progress.untilGivenUp(runSteps(all, isGivenUp));
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
    const committed: Promise<T> = store.run((tx) => drive(this.#inTransaction(tx, context)), {
      isBackground: attempt.isBackground,
      isGivenUp,
    });
    // oxlint-disable-next-line promise/prefer-await-to-then -- also when nothing began
    committed.then(started, started);
    try {
      await withDeadline(start, this.#beginStep.timeoutMs, () => notBegun(store.whyWaiting?.()));
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
    const result = yield* steps({ tx, begun, keys, progress });
    committing();
    return result;
  }
}

function notBegun(reason = ""): Error {
  return new Error(`no transaction began in time${reason && `: ${reason}`}`);
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
