import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { taskTrace, type TaskTrace } from "@countersign/core";
import { askStore, escapeForLog, traced } from "@countersign/core/door";
import { Transactor } from "@countersign/idempotency/door";
import { TaskAttempt, type AttemptEnd, type TaskWork } from "./task-attempt.ts";
import { reasonOf, TaskError } from "./task-failure.ts";
import { nameOf, TaskReports, type Reporting } from "./task-reports.ts";
import { backoffOf, type ResolvedWorkerOptions } from "./worker-options.ts";
import type { ClaimedTask, TaskFailure, WorkStores } from "./work-store.ts";

export interface WorkerInit<Tx> extends Reporting {
  readonly queue: string;
  readonly stores: WorkStores<Tx>;
  readonly options: ResolvedWorkerOptions;
  /** Throws what the attempt fails with. */
  readonly workOf: (task: ClaimedTask) => TaskWork<Tx>;
}

/** One of the words of `countersign:task`. */
type TaskOutcome = "done" | "failed" | "dead" | "gone" | "given-back";

interface Running<Tx> {
  readonly attempt: TaskAttempt<Tx>;
  /** Renewed until the attempt ended, or hung for longer than its time and a lease. */
  isKept: boolean;
}

const givenBackForMs = 1_000;
const soonMs = 20;
const longestTimerMs = 2_147_483_647;
/** Where the store fails. */
const longestPauseMs = 30_000;

/** Works on the tasks of one queue, several at a time, until drain(). */
export class Worker<Tx> {
  readonly #init: WorkerInit<Tx>;
  readonly #transactor: Transactor<Tx>;
  readonly #reports: TaskReports;
  readonly #running = new Set<Running<Tx>>();
  #looping: Promise<void> | undefined;
  #renewing: NodeJS.Timeout | undefined;
  #renewedAtMs = 0;
  readonly #stopping = new AbortController();
  /** Whether there may be work that the last look did not find. */
  #isAwake = false;
  #wakeUp: (() => void) | undefined;
  #soon: NodeJS.Timeout | undefined;

  constructor(init: WorkerInit<Tx>) {
    this.#init = init;
    this.#reports = new TaskReports(init);
    const { waitMs, storeTimeoutMs, idleTimeoutMs, timeoutMs, leaseMs } = init.options;
    const unused = { recovery: "hold", maxWaiters: 0, retryAfterSeconds: 1 } as const;
    this.#transactor = new Transactor(init.stores, {
      waitMs,
      storeTimeoutMs,
      idleTimeoutMs,
      // As long as an attempt is waited for.
      transactionTimeoutMs: timeoutMs + leaseMs,
      ...unused,
    });
  }

  /** Begins to claim tasks, unless it did or has to stop. */
  start(): void {
    if (this.#looping !== undefined || this.#stopping.signal.aborted) return;
    const { leaseMs } = this.#init.options;
    this.#renewedAtMs = performance.now();
    this.#renewing = setInterval(() => void this.#renew(), leaseMs / 3);
    this.#looping = this.#loop();
  }

  /** Looks for tasks when the caller's transaction has probably committed. */
  wakeSoon(): void {
    if (this.#looping === undefined || this.#soon !== undefined) return;
    this.#soon = setTimeout(() => {
      this.#soon = undefined;
      this.wake();
    }, soonMs);
    this.#soon.unref();
  }

  /** Looks for tasks when one is due again whose time this process knows. */
  #wakeIn(delayMs: number): void {
    setTimeout(() => this.wake(), Math.min(delayMs, longestTimerMs)).unref();
  }

  /** Looks for tasks now. */
  wake(): void {
    this.#isAwake = true;
    this.#wakeUp?.();
  }

  /** Claims nothing more and awaits what runs; what still runs after `timeoutMs` is aborted. Resolves to how many that were. */
  async drain(timeoutMs: number): Promise<number> {
    this.#stopping.abort();
    this.wake();
    const endsAtMs = performance.now() + timeoutMs;
    await Promise.race([this.#looping, sleep(timeoutMs, undefined, { ref: false })]);
    while (this.#running.size > 0 && performance.now() < endsAtMs) {
      // oxlint-disable-next-line no-await-in-loop -- polling, for a few seconds at the end of a process
      await sleep(20);
    }
    clearInterval(this.#renewing);
    const left = this.#running.size;
    for (const { attempt } of this.#running) attempt.abort(new Error("the process ends"));
    return left;
  }

  async #loop(): Promise<void> {
    const { concurrency, pollMs, backoffMs, maxBackoffMs } = this.#init.options;
    let failures = 0;
    while (!this.#stopping.signal.aborted) {
      this.#isAwake = false;
      const room = concurrency - this.#running.size;
      try {
        // oxlint-disable-next-line no-await-in-loop -- one look after the other
        const tasks = room > 0 ? await this.#claim(room) : [];
        failures = 0;
        // oxlint-disable-next-line no-await-in-loop -- as above
        if (this.#stopping.signal.aborted) return await this.#giveBack(tasks, 0);
        for (const task of tasks) void this.#attempt(task);
        // oxlint-disable-next-line no-await-in-loop -- as above
        if (tasks.length < room || room === 0) await this.#untilWoken(pollMs * (0.75 + Math.random() / 2));
      } catch (error) {
        failures += 1;
        this.#reports.storeFailed("no tasks could be claimed", error);
        const longest = Math.min(maxBackoffMs, longestPauseMs);
        // oxlint-disable-next-line no-await-in-loop -- as above
        await this.#pause(backoffOf(failures, { backoffMs, maxBackoffMs: longest }));
      }
    }
  }

  async #claim(limit: number): Promise<readonly ClaimedTask[]> {
    const { queue, stores, options } = this.#init;
    const claim = { queue, limit: Math.min(limit, 100), token: randomUUID(), leaseMs: options.leaseMs };
    return await this.#ask("claim-tasks", () => stores.work.claim(claim));
  }

  /** For that long, or until wake(). */
  async #untilWoken(forMs: number): Promise<void> {
    if (this.#isAwake) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, forMs);
      this.#wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wakeUp = undefined;
  }

  /** For that long, or until the worker stops. */
  async #pause(forMs: number): Promise<void> {
    try {
      await sleep(forMs, undefined, { signal: this.#stopping.signal });
    } catch {
      // It stops.
    }
  }

  async #attempt(task: ClaimedTask): Promise<void> {
    const running: Running<Tx> = {
      attempt: new TaskAttempt(task, this.#init.stores.work, this.#transactor),
      isKept: true,
    };
    // Of one that has lost its lease to this very worker.
    for (const { attempt } of this.#running) if (attempt.task.id === task.id) attempt.abort(elsewhere());
    this.#running.add(running);
    const { queue } = this.#init;
    const context: TaskTrace = { queue, taskId: escapeForLog(task.id, 256), attempt: task.attempt };
    await traced(taskTrace, context, {
      work: () => this.#ended(running, context),
      outcomeOf: (outcome: TaskOutcome) => outcome,
    });
    this.#running.delete(running);
    this.wake();
  }

  /** Resolves when the task's owner has nothing more to do with it. Does not reject. */
  async #ended(running: Running<Tx>, context: TaskTrace): Promise<TaskOutcome> {
    const { task } = running.attempt;
    const { maxAttempts } = this.#init.options;
    const tooMany = `${maxAttempts} attempts ended without a result`;
    const end: AttemptEnd =
      task.attempt > maxAttempts
        ? { outcome: "failed", error: new TaskError(tooMany, { isFinal: true }) }
        : await this.#endOf(running);
    if (end.outcome === "failed") context.error = end.error;
    return this.#settle(task, end);
  }

  async #endOf(running: Running<Tx>): Promise<AttemptEnd> {
    const { workOf, options } = this.#init;
    const { attempt } = running;
    const late = new TaskError(`the attempt took longer than ${options.timeoutMs} ms`);
    const work = attempt.run(workOf);
    const ended = await within(work, options.timeoutMs);
    if (ended !== undefined) return ended;
    attempt.abort(late);
    // It may still act: its entity waits for it, but not for ever.
    const endedLate = await within(work, options.leaseMs);
    if (endedLate !== undefined) return endedLate;
    running.isKept = false;
    return { outcome: "failed", error: late };
  }

  async #settle(task: ClaimedTask, end: AttemptEnd): Promise<TaskOutcome> {
    const { work } = this.#init.stores;
    if (end.outcome === "gone") return this.#reports.gone(task);
    if (end.outcome === "done") {
      if (end.lateError !== undefined) this.#reports.failedLate(task, end.lateError);
      return "done";
    }
    try {
      if (end.outcome === "given-back") {
        this.#reports.givenBack(task, end.error);
        await this.#giveBack([task], givenBackForMs);
        return "given-back";
      }
      const failure = this.#failureOf(task, end.error);
      const isOurs = await this.#ask("fail-task", () => work.fail(task, failure));
      if (!isOurs) return this.#reports.gone(task);
      const isDead = failure.retryInMs === undefined;
      if (failure.retryInMs !== undefined) this.#wakeIn(failure.retryInMs);
      this.#reports.failed(task, end.error, isDead);
      return isDead ? "dead" : "failed";
    } catch (error) {
      this.#reports.storeFailed(
        `${nameOf(task)} ended, and that could not be written: its lease decides`,
        error,
      );
      return "failed";
    }
  }

  #failureOf({ attempt }: ClaimedTask, error: unknown): TaskFailure {
    const { options } = this.#init;
    const said = error instanceof TaskError ? error : undefined;
    const isDead = said?.isFinal === true || attempt >= options.maxAttempts;
    const retryInMs = isDead ? undefined : (said?.retryInMs ?? backoffOf(attempt, options));
    return { reason: reasonOf(error), retryInMs };
  }

  async #renew(): Promise<void> {
    const { leaseMs } = this.#init.options;
    const startedAtMs = performance.now();
    const { work } = this.#init.stores;
    const kept = [...this.#running].filter(({ isKept }) => isKept);
    try {
      if (kept.length > 0) {
        const tasks = kept.map(({ attempt }) => attempt.task);
        const owned = new Set(await this.#ask("extend-tasks", () => work.extend(tasks, leaseMs)));
        for (const { attempt } of kept) {
          if (!owned.has(attempt.task.id)) attempt.abort(elsewhere());
        }
      }
      this.#renewedAtMs = startedAtMs;
    } catch (error) {
      this.#reports.storeFailed("the leases of tasks could not be renewed", error);
      // The next renewal would still be in time.
      if (performance.now() + leaseMs / 3 - this.#renewedAtMs < leaseMs) return;
      for (const { attempt } of kept) attempt.abort(new Error("the task's lease could not be renewed"));
    }
  }

  async #giveBack(tasks: readonly ClaimedTask[], delayMs: number): Promise<void> {
    if (tasks.length === 0) return;
    await this.#ask("give-back-tasks", () => this.#init.stores.work.giveBack(tasks, delayMs));
  }

  async #ask<T>(step: string, call: () => Promise<T>): Promise<T> {
    const { stores, options } = this.#init;
    const { engine } = stores.work;
    return await askStore({ engine, step, timeoutMs: options.storeTimeoutMs, name: "the work store" }, call);
  }
}

function elsewhere(): Error {
  return new Error("another worker has the task");
}

/** Undefined when it has not ended in time. */
async function within<T>(work: Promise<T>, timeoutMs: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), timeoutMs);
    // The renewal of leases keeps the process alive, until drain().
    timer.unref();
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
