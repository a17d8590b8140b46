import { quoteForLog } from "@countersign/core";
import { publishFailure, publishNotice } from "@countersign/core/internal";
import { noticeOfEnd } from "../internal.ts";
import { reasonOf } from "./task-failure.ts";
import type { ClaimedTask } from "./work-store.ts";

export interface Reporting {
  /** The factory that was called, for messages. */
  readonly factory: string;
  /** Called for each failed attempt, not awaited; `isDead` when no other follows. */
  readonly onFailure?: ((task: ClaimedTask, error: unknown, isDead: boolean) => unknown) | undefined;
}

/** Tells of what became of tasks, by notices and to the app. Nothing here throws. */
export class TaskReports {
  readonly #init: Reporting;

  constructor(init: Reporting) {
    this.#init = init;
  }

  gone(task: ClaimedTask): "gone" {
    const message = `${nameOf(task)} is with another worker: this attempt took longer than its lease`;
    this.#tell("task-gone", message);
    return "gone";
  }

  givenBack(task: ClaimedTask, error: unknown): void {
    this.#tell("task-given-back", `${nameOf(task)} could not be begun`, error);
  }

  failedLate(task: ClaimedTask, error: unknown): void {
    this.#tell("task-failed", `${nameOf(task)} is done, and failed after its commit()`, error);
  }

  failed(task: ClaimedTask, error: unknown, isDead: boolean): void {
    this.#ended(task, error);
    void this.#callApp(task, error, isDead);
    if (isDead) {
      const message = `${nameOf(task)} is a dead letter after attempt ${task.attempt}: ${quoteForLog(reasonOf(error))}`;
      this.#alarm("task-dead", message, error);
    } else if (this.#init.onFailure === undefined) {
      this.#tell("task-failed", `${nameOf(task)} failed and will be tried again`, error);
    }
  }

  storeFailed(message: string, error: unknown): void {
    this.#alarm("work-store-failed", message, error);
  }

  #ended(task: ClaimedTask, error: unknown): void {
    const end = noticeOfEnd(error);
    if (end !== undefined) this.#alarm(end.code, `${nameOf(task)} ${end.message}`, error);
  }

  async #callApp(task: ClaimedTask, error: unknown, isDead: boolean): Promise<void> {
    try {
      await this.#init.onFailure?.(task, error, isDead);
    } catch (thrown) {
      const message = `${nameOf(task)} failed, and so did the function that was to be told`;
      this.#alarm("on-error-failed", message, thrown);
    }
  }

  #tell(code: string, message: string, error?: unknown): void {
    publishNotice({ guard: this.#init.factory, code, message, error });
  }

  #alarm(code: string, message: string, error: unknown): void {
    publishFailure({ guard: this.#init.factory, code, message, error });
  }
}

export function nameOf({ queue, id }: Pick<ClaimedTask, "queue" | "id">): string {
  return `the task ${quoteForLog(id)} of ${queue}`;
}
