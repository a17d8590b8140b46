import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { OptionError, traces, type PublishedEvents } from "@countersign/core";
import { escapeForLog, traced, workSlices } from "@countersign/core/internal";
import { TransactionOwner } from "../internal.ts";
import { elsewhere, Leases, type Running } from "./leases.ts";
import { longestPauseMs, pause, Settlement, type TaskOutcome } from "./settlement.ts";
import { TaskAttempt, type AttemptEnd, type TaskWork } from "./task-attempt.ts";
import { TaskError } from "./task-failure.ts";
import { TaskReports, type Reporting } from "./task-reports.ts";
import { backoffOf, type ResolvedWorkerOptions } from "./worker-options.ts";
import type { ClaimedTask, WorkStores } from "./work-store.ts";
import { WorkerStore } from "./worker-store.ts";

export interface WorkerInit<Tx> extends Reporting {
  readonly queue: string;
  readonly stores: WorkStores<Tx>;
  readonly options: ResolvedWorkerOptions;
  /** Throws what the attempt fails with. */
  readonly workOf: (task: ClaimedTask) => TaskWork<Tx>;
}

const soonMs = 20;
const longestTimerMs = 2_147_483_647;

/** Works on the tasks of one queue, several at a time, until drain(). */
export class Worker<Tx> {
  readonly #init: WorkerInit<Tx>;
  readonly #owner: TransactionOwner<Tx>;
  readonly #store: WorkerStore;
  readonly #reports: TaskReports;
  readonly #settlement: Settlement;
  readonly #running = new Set<Running<Tx>>();
  readonly #leases: Leases<Tx>;
  #looping: Promise<void> | undefined;
  readonly #stopping = new AbortController();
  /** Whether there may be work that the last look did not find. */
  #isAwake = false;
  #wakeUp: (() => void) | undefined;
  #soon: NodeJS.Timeout | undefined;

  constructor(init: WorkerInit<Tx>) {
    assertOwnQueue(init);
    this.#init = init;
    const { options } = init;
    // As many ends may wait with it as could not be written.
    setMaxListeners(0, this.#stopping.signal);
    const reports = new TaskReports(init);
    const store = new WorkerStore(init, reports);
    this.#store = store;
    this.#reports = reports;
    this.#settlement = new Settlement({
      options,
      store,
      reports,
      wakeIn: (delayMs) => this.#wakeIn(delayMs),
      stopping: this.#stopping.signal,
    });
    this.#leases = new Leases({ leaseMs: options.leaseMs, running: this.#running, store, reports });
    const { waitMs, storeTimeoutMs, idleTimeoutMs, timeoutMs, leaseMs } = options;
    const unused = { recovery: "hold", maxWaiters: 0, retryAfterSeconds: 1 } as const;
    this.#owner = new TransactionOwner(init.stores, {
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
    this.#leases.start();
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
    const inTime = (work: Promise<void> | undefined): Promise<void> =>
      Promise.race([work, sleep(Math.max(0, endsAtMs - performance.now()), undefined, { ref: false })]);
    await inTime(this.#looping);
    while (this.#running.size > 0 && performance.now() < endsAtMs) {
      // oxlint-disable-next-line no-await-in-loop -- polling, for a few seconds at the end of a process
      await sleep(20);
    }
    await inTime(this.#store.settled());
    this.#leases.stop();
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
        const tasks = room > 0 ? await this.#store.claim(room) : [];
        failures = 0;
        // oxlint-disable-next-line no-await-in-loop -- as above
        await this.#begin(tasks);
        // oxlint-disable-next-line no-await-in-loop -- as above
        if (tasks.length < room || room === 0) await this.#untilWoken(pollMs * (0.75 + Math.random() / 2));
      } catch (error) {
        failures += 1;
        this.#reports.storeFailed("no tasks could be claimed", error);
        const longest = Math.min(maxBackoffMs, longestPauseMs);
        // oxlint-disable-next-line no-await-in-loop -- as above
        await pause(backoffOf(failures, { backoffMs, maxBackoffMs: longest }), this.#stopping.signal);
      }
    }
  }

  /** Gives back those that were not begun before the worker has to stop. */
  async #begin(tasks: readonly ClaimedTask[]): Promise<void> {
    for (const [index, task] of tasks.entries()) {
      // oxlint-disable-next-line no-await-in-loop -- yields to the event loop
      while (this.#store.isOverdue) await workSlices.next();
      // oxlint-disable-next-line no-await-in-loop -- as above
      if (this.#stopping.signal.aborted) return await this.#store.giveBack(tasks.slice(index), 0);
      void this.#attempt(task);
    }
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

  async #attempt(task: ClaimedTask): Promise<void> {
    const running: Running<Tx> = {
      attempt: new TaskAttempt(task, this.#init.stores.work, this.#owner),
      isKept: true,
    };
    // Of one that has lost its lease to this very worker.
    for (const { attempt } of this.#running) if (attempt.task.id === task.id) attempt.abort(elsewhere());
    this.#running.add(running);
    const { queue } = this.#init;
    const context: PublishedEvents["task"] = {
      queue,
      taskId: escapeForLog(task.id, 256),
      attempt: task.attempt,
    };
    await traced(traces.task, context, {
      work: () => this.#ended(running, context),
      outcomeOf: (outcome: TaskOutcome) => outcome,
    });
    this.#running.delete(running);
    this.wake();
  }

  /** Resolves when the task's owner has nothing more to do with it. Does not reject. */
  async #ended(running: Running<Tx>, context: PublishedEvents["task"]): Promise<TaskOutcome> {
    const { task } = running.attempt;
    const { maxAttempts } = this.#init.options;
    const tooMany = `${maxAttempts} attempts ended without a result`;
    const end: AttemptEnd =
      task.attempt > maxAttempts
        ? { outcome: "failed", error: new TaskError(tooMany, { isFinal: true }) }
        : await this.#endOf(running);
    if (end.outcome === "failed") context.error = end.error;
    return this.#settlement.settle(task, end);
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
    if (attempt.isDone) return { outcome: "done", lateError: late };
    running.isKept = false;
    return { outcome: "failed", error: late };
  }
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

// The factory of each queue's workers, by its table of work.
const factoriesOf = new WeakMap<object, Map<string, string>>();

/** Throws an OptionError where another factory's workers have the queue: each would end the other's tasks, as done. */
function assertOwnQueue<Tx>({ factory, queue, stores: { work } }: WorkerInit<Tx>): void {
  const factories = factoriesOf.get(work) ?? new Map<string, string>();
  factoriesOf.set(work, factories);
  const other = factories.get(queue) ?? factory;
  if (other !== factory) {
    const what = `${other} works on the queue ${queue} of these stores already, and either would do the other's tasks; name another one`;
    throw new OptionError(factory, { what });
  }
  factories.set(queue, factory);
}
