import type { TaskAttempt } from "./task-attempt.ts";
import type { TaskReports } from "./task-reports.ts";
import type { WorkerStore } from "./worker-store.ts";

/** An attempt under way. */
export interface Running<Tx> {
  readonly attempt: TaskAttempt<Tx>;
  /** Renewed until the attempt ended, or hung for longer than its time and a lease. */
  isKept: boolean;
}

interface LeasesInit<Tx> {
  readonly leaseMs: number;
  readonly running: ReadonlySet<Running<Tx>>;
  readonly store: WorkerStore;
  readonly reports: TaskReports;
}

/** Renews the leases of what runs, three times in the time of one. */
export class Leases<Tx> {
  readonly #init: LeasesInit<Tx>;
  #timer: NodeJS.Timeout | undefined;
  #renewedAtMs = 0;

  constructor(init: LeasesInit<Tx>) {
    this.#init = init;
  }

  start(): void {
    this.#renewedAtMs = performance.now();
    this.#timer = setInterval(() => void this.#renew(), this.#init.leaseMs / 3);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #renew(): Promise<void> {
    const { leaseMs, running, store, reports } = this.#init;
    const startedAtMs = performance.now();
    const kept = [...running]
      .filter(({ isKept, attempt }) => isKept && !attempt.isDone)
      .map(({ attempt }) => attempt);
    try {
      if (kept.length > 0) {
        const owned = await store.extend(kept.map(({ task }) => task));
        for (const attempt of kept) if (!owned.has(attempt.task.id)) abortUnlessDone(attempt, elsewhere());
      }
      this.#renewedAtMs = startedAtMs;
    } catch (error) {
      reports.storeFailed("the leases of tasks could not be renewed", error);
      // The next renewal would still be in time.
      if (performance.now() + leaseMs / 3 - this.#renewedAtMs < leaseMs) return;
      for (const attempt of kept)
        abortUnlessDone(attempt, new Error("the task's lease could not be renewed"));
    }
  }
}

function abortUnlessDone(attempt: Pick<TaskAttempt<never>, "abort" | "mayBeDone">, reason: Error): void {
  if (!attempt.mayBeDone) attempt.abort(reason);
}

/** Why an attempt is aborted whose task another one has. */
export function elsewhere(): Error {
  return new Error("another worker has the task");
}
