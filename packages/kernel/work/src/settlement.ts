import { isGuardError } from "@countersign/core";
import type { AttemptEnd } from "./task-attempt.ts";
import { reasonOf, TaskError } from "./task-failure.ts";
import { nameOf, type TaskReports } from "./task-reports.ts";
import { backoffOf, type ResolvedWorkerOptions } from "./worker-options.ts";
import type { ClaimedTask, TaskFailure } from "./work-store.ts";
import type { WorkerStore } from "./worker-store.ts";

/** One of the words of `countersign:task`. */
export type TaskOutcome = "done" | "failed" | "dead" | "gone" | "given-back";

interface SettlementInit {
  readonly options: ResolvedWorkerOptions;
  readonly store: WorkerStore;
  readonly reports: TaskReports;
  /** Looks for tasks when one is due again. */
  readonly wakeIn: (delayMs: number) => void;
}

const givenBackForMs = 1_000;

/** Writes how attempts ended, and tells of it. */
export class Settlement {
  readonly #init: SettlementInit;

  constructor(init: SettlementInit) {
    this.#init = init;
  }

  /** Resolves when the task's owner has nothing more to do with it. Does not reject. */
  async settle(task: ClaimedTask, end: AttemptEnd): Promise<TaskOutcome> {
    const { reports, store } = this.#init;
    if (end.outcome === "gone") return reports.gone(task);
    if (end.outcome === "done") {
      if (end.lateError !== undefined) reports.failedLate(task, end.lateError);
      return "done";
    }
    try {
      if (end.outcome === "failed") return await this.#fail(task, end.error);
      reports.givenBack(task, end.error);
      await store.giveBack([task], givenBackForMs);
      return "given-back";
    } catch (error) {
      reports.storeFailed(`${nameOf(task)} ended, and that could not be written: its lease decides`, error);
      return "failed";
    }
  }

  async #fail(task: ClaimedTask, error: unknown): Promise<TaskOutcome> {
    const { reports, store, wakeIn } = this.#init;
    const failure = this.#failureOf(task, error);
    const isOurs = await store.fail(task, failure);
    if (!isOurs) return (await this.#isDone(task, error)) ? "done" : reports.gone(task);
    const isDead = failure.retryInMs === undefined;
    if (failure.retryInMs !== undefined) wakeIn(failure.retryInMs);
    reports.failed(task, error, isDead);
    return isDead ? "dead" : "failed";
  }

  /** Whether a COMMIT whose reply was lost has ended the task. */
  async #isDone(task: ClaimedTask, error: unknown): Promise<boolean> {
    if (!isGuardError(error) || error.code !== "commit-unknown") return false;
    const record = await this.#init.store.read(task);
    return record?.state === "done" && record.attempts === task.attempt;
  }

  #failureOf({ attempt }: ClaimedTask, error: unknown): TaskFailure {
    const { options } = this.#init;
    const said = error instanceof TaskError ? error : undefined;
    const isDead = said?.isFinal === true || attempt >= options.maxAttempts;
    const retryInMs = isDead ? undefined : (said?.retryInMs ?? backoffOf(attempt, options));
    return { reason: reasonOf(error), retryInMs };
  }
}
