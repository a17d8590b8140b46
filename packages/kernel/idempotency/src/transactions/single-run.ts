import { withDeadline } from "@countersign/core";
import { askStore } from "@countersign/core/door";
import { answerOf, runSteps, runStepsNow, type Steps } from "./steps.ts";
import type { ResolvedTransactionOptions } from "./transaction-options.ts";
import type { TransactionBegun, TransactionClaim, TransactionStore } from "./transaction-store.ts";

/** What a handler's steps have in one transaction. */
export interface OpenTransaction<Tx> {
  readonly tx: Tx;
  readonly begun: TransactionBegun;
}

/** How far a request has come in its present transaction. */
export interface Progress {
  begun: boolean;
  /** COMMIT may have been sent. */
  committing: boolean;
  /** Nobody waits for the request any more: it sends no COMMIT. */
  abandoned: boolean;
}

export interface RunAttempt extends Pick<TransactionClaim, "nonce" | "keys"> {
  readonly req?: object | undefined;
}

/** What a run is rejected with when its nonce is another request's: nothing of the transaction may stay. */
export const nonceSeen = new Error("the nonce was used before");

/** Runs a handler's steps once, between BEGIN and COMMIT. */
export class SingleRun<Tx> {
  readonly #store: TransactionStore<Tx>;
  readonly #options: ResolvedTransactionOptions;
  readonly #beginStep: Parameters<typeof askStore>[0];

  constructor(store: TransactionStore<Tx>, options: ResolvedTransactionOptions) {
    this.#store = store;
    this.#options = options;
    const timeoutMs = options.storeTimeoutMs + options.waitMs;
    this.#beginStep = {
      engine: store.engine,
      step: "begin",
      timeoutMs,
      name: "the transaction's first step",
    };
  }

  /** Resolves when it is committed. Rejects with {@link nonceSeen}, and with errors of the engine or the handler as they are. */
  async run<T>(
    attempt: RunAttempt,
    steps: (open: OpenTransaction<Tx>) => Steps<T>,
    progress: Progress,
  ): Promise<T> {
    const store = this.#store;
    const [start, started] = gate();
    const isGivenUp = (): boolean => progress.abandoned;
    const run = <R>(all: Steps<R>): R | Promise<R> =>
      store.mode === "sync" ? runStepsNow(all) : runSteps(all, isGivenUp);
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
    progress.begun = true;
    started();
    if (begun.nonce !== "fresh") throw nonceSeen;
    const result = yield* steps({ tx, begun });
    progress.committing = true;
    return result;
  }
}

interface Running<Tx, T> {
  readonly attempt: RunAttempt;
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
