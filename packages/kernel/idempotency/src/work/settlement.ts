import { setTimeout as sleep } from "node:timers/promises";
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
  /** Aborts when the worker stops. */
  readonly stopping: AbortSignal;
}

/** What the record of a failed attempt says. `gone`: nothing of it, another worker has the task. */
type Written = "failed" | "done" | "gone";

interface Telling {
  readonly failure: TaskFailure;
  readonly error: unknown;
  readonly written: Written;
}

const givenBackForMs = 1_000;
const giveUpAfterMs = 3_600_000;
/** Where the store fails. */
export const longestPauseMs = 30_000;

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
    if (end.outcome === "failed") return await this.#fail(task, end.error);
    reports.givenBack(task, end.error);
    try {
      await store.giveBack([task], givenBackForMs);
      return "given-back";
    } catch (error) {
      reports.storeFailed(unwritten(task), error);
      return "failed";
    }
  }

  async #fail(task: ClaimedTask, error: unknown): Promise<TaskOutcome> {
    const { reports, store } = this.#init;
    const failure = this.#failureOf(task, error);
    try {
      return this.#tell(task, { failure, error, written: await this.#write(task, failure) });
    } catch (fault) {
      reports.storeFailed(unwritten(task), fault);
      store.later(this.#failLater(task, failure, error));
      return "failed";
    }
  }

  /**
   * Until the store says what became of the end: it may have been written without an answer, and a dead letter must be told of. Once more
   * when the worker stops. Does not reject.
   */
  async #failLater(task: ClaimedTask, failure: TaskFailure, error: unknown): Promise<void> {
    const { options, stopping } = this.#init;
    const givesUpAtMs = performance.now() + giveUpAfterMs;
    const longest = Math.min(options.maxBackoffMs, longestPauseMs);
    for (let failures = 1; ; failures += 1) {
      const pauseMs = backoffOf(failures, { backoffMs: options.backoffMs, maxBackoffMs: longest });
      // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
      await pause(pauseMs, stopping);
      const isLast = stopping.aborted || performance.now() > givesUpAtMs;
      try {
        // oxlint-disable-next-line no-await-in-loop -- as above
        this.#tell(task, { failure, error, written: await this.#write(task, failure) });
        return;
      } catch {
        if (isLast) return;
      }
    }
  }

  /** Writes the failure, unless it is written, or the task has ended otherwise. */
  async #write(task: ClaimedTask, failure: TaskFailure): Promise<Written> {
    const { store } = this.#init;
    if (await store.fail(task, failure)) return "failed";
    const record = await store.read(task);
    // By a COMMIT whose reply was lost, or that came after the attempt's time.
    if (record?.state === "done" && record.attempts === task.attempt) return "done";
    const last = record?.failures.at(-1);
    return last?.attempt === task.attempt && last.reason === failure.reason ? "failed" : "gone";
  }

  #tell(task: ClaimedTask, { failure, error, written }: Telling): TaskOutcome {
    const { reports, wakeIn } = this.#init;
    if (written === "gone") return reports.gone(task);
    if (written === "done") return "done";
    const isDead = failure.retryInMs === undefined;
    if (failure.retryInMs !== undefined) wakeIn(failure.retryInMs);
    reports.failed(task, error, isDead);
    return isDead ? "dead" : "failed";
  }

  #failureOf({ attempt }: ClaimedTask, error: unknown): TaskFailure {
    const { options } = this.#init;
    const said = error instanceof TaskError ? error : undefined;
    const isDead = said?.isFinal === true || attempt >= options.maxAttempts;
    const retryInMs = isDead ? undefined : (said?.retryInMs ?? backoffOf(attempt, options));
    return { reason: reasonOf(error), retryInMs };
  }
}

/** For that long, or until the signal aborts. Keeps no process alive. */
export async function pause(forMs: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(forMs, undefined, { signal, ref: false });
  } catch {
    // It has aborted.
  }
}

function unwritten(task: ClaimedTask): string {
  return `${nameOf(task)} ended, and that could not be written: its lease decides`;
}
