import { isGuardError } from "@countersign/core";
import { appAnswers } from "@countersign/core/internal";
import type { Steps, TransactionOwner } from "../internal.ts";
import { TaskError } from "./task-failure.ts";
import type { ClaimedTask, WorkStore } from "./work-store.ts";

/** What work has that acts outside of the database. */
export interface OutsideContext<Tx> {
  /** From 1, this one included. */
  readonly attempt: number;
  /** Aborts after `timeoutMs`, and when another worker may have the task: begin no effect after that. */
  readonly signal: AbortSignal;
  /** Writes in one transaction with the end of the task. At most once. Rejects, and nothing was written, when another worker has it. */
  commit<T>(work: (tx: Tx) => Steps<T>): Promise<T>;
}

/** How a task is worked on: in the transaction in which it ends, so once; or outside, at least once. */
export type TaskWork<Tx> =
  | { readonly inTransaction: (tx: Tx) => Steps<unknown> }
  | { readonly outside: (context: OutsideContext<Tx>) => unknown };

/**
 * How an attempt ended. `done` with a `lateError`: it failed after its commit(). `gone`: another worker has the task; `given-back`: its
 * handler never began, and it does not count.
 */
export type AttemptEnd =
  | { readonly outcome: "done"; readonly lateError?: unknown }
  | { readonly outcome: "gone" }
  | { readonly outcome: "given-back" | "failed"; readonly error: unknown };

/** Throws for a handler that returned its failure: the task would be done. */
export function assertWorked(returned: unknown): void {
  appAnswers.throwFailure(
    returned,
    "a task's handler returned a Response, which nobody sends: throw an Error to get the task again",
  );
}

/** Of transactions that others are in the way of, or the engine. */
const unbegun: ReadonlySet<string> = new Set(["transaction-conflict", "transaction-unavailable"]);

/** Works on a claimed task once, and ends it as done. Does not reject. */
export class TaskAttempt<Tx> {
  readonly task: ClaimedTask;
  readonly #store: WorkStore<Tx>;
  readonly #owner: TransactionOwner<Tx>;
  readonly #controller = new AbortController();
  /** The transaction that ends the task, once it has begun. */
  #ending: Promise<unknown> | undefined;
  /** From then on it counts: an error of the handler may look like one of the transaction, and what acted outside must not act for ever. */
  #hasBegun = false;
  #isCommitting = false;
  #isDone = false;

  constructor(task: ClaimedTask, store: WorkStore<Tx>, owner: TransactionOwner<Tx>) {
    this.task = task;
    this.#store = store;
    this.#owner = owner;
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  /** Whether the task may have ended as done: who has it then, commit() tells, and no renewal. */
  get mayBeDone(): boolean {
    return this.#isCommitting || this.#isDone;
  }

  async run(workOf: (task: ClaimedTask) => TaskWork<Tx>): Promise<AttemptEnd> {
    try {
      const work = workOf(this.task);
      if ("inTransaction" in work) {
        await this.#commitOnce(work.inTransaction);
        return { outcome: "done" };
      }
      const { signal } = this.#controller;
      this.#hasBegun = true;
      const returned = await work.outside({
        attempt: this.task.attempt,
        signal,
        commit: (inner) => this.#commitOnce(inner),
      });
      assertWorked(returned);
      // A commit() that nobody awaited, or whose rejection was swallowed, still decides.
      await (this.#ending ?? this.#commitOnce(nothing));
      return { outcome: "done" };
    } catch (error) {
      return await this.#endAfter(error);
    }
  }

  async #endAfter(error: unknown): Promise<AttemptEnd> {
    try {
      await this.#ending;
    } catch {
      // It is `error`, or came after it.
    }
    if (this.#isDone) return { outcome: "done", lateError: error };
    if (error === taskGone) return { outcome: "gone" };
    const isUnbegun = error instanceof LockedError || (isGuardError(error) && unbegun.has(error.code));
    if (isUnbegun && !this.#hasBegun) return { outcome: "given-back", error };
    const { aborted, reason } = this.#controller.signal;
    return { outcome: "failed", error: aborted ? reason : error };
  }

  #commitOnce<T>(work: (tx: Tx) => Steps<T>): Promise<T> {
    const isFirst = this.#ending === undefined;
    const ending = isFirst
      ? this.#commit(work)
      : Promise.reject<T>(new TypeError("commit() ends the task, and was called before"));
    if (isFirst) this.#ending = ending;
    // The attempt awaits it: where nobody else does, its rejection must not end the process.
    ending.catch(() => {});
    return ending;
  }

  /** Does the work and ends the task in one transaction. */
  async #commit<T>(work: (tx: Tx) => Steps<T>): Promise<T> {
    this.#isCommitting = true;
    try {
      const value = await this.#commitWork(work);
      this.#isDone = true;
      return value;
    } finally {
      this.#isCommitting = false;
    }
  }

  async #commitWork<T>(work: (tx: Tx) => Steps<T>): Promise<T> {
    const [store, owner, task] = [this.#store, this.#owner, this.task];
    const begun = (): void => void (this.#hasBegun = true);
    const performed = await owner.perform({ keys: [], isBackground: true }, function* (open): Steps<T> {
      begun();
      const value = yield* owner.handle(open, [], {}, () => work(open.tx));
      // The handler has settled: no statement of its own comes between here and COMMIT.
      if (!(yield* owner.lastStep(() => store.finish(open.tx, task)))) throw taskGone;
      return value;
    });
    if (performed.status !== "ended") throw new LockedError("the transaction waited too long for a lock");
    return performed.result;
  }
}

// oxlint-disable-next-line require-yield -- steps that ask nothing
function* nothing(): Steps<void> {}

const taskGone = new Error("another worker has the task");

class LockedError extends TaskError {}
