import { setImmediate } from "node:timers/promises";
import { withDeadline } from "@countersign/core";
import type { Logger } from "pino";
import type { Outbox, Task, TaskKind } from "../ledgers/outbox.ts";

/** Runs the tasks of one kind, one after the other. */
export interface Worker {
  /** Looks for work now instead of at the next poll. */
  wake(): void;
  /** Waits for the task that is claimed or running; the others stay in the outbox. */
  stop(): Promise<void>;
}

/** A growing pause between attempts, spread so that many tasks that failed together do not come back together. */
export interface Backoff {
  readonly baseMs: number;
  readonly maxMs: number;
}

/** What a {@link Worker} needs. */
export interface WorkerOptions {
  readonly kind: TaskKind;
  readonly outbox: Outbox;
  /** Does the task and marks it as finished. A throw means that its outcome is unknown: it will be run again. */
  readonly run: (task: Task, signal: AbortSignal) => Promise<void>;
  readonly backoff: Backoff;
  /** After this many attempts a task is given up. */
  readonly maxAttempts: number;
  /** After this time `signal` of a run fires. */
  readonly timeoutMs: number;
  readonly pollMs: number;
  readonly logger: Logger;
  readonly random: () => number;
}

export function startWorker(options: WorkerOptions): Worker {
  const { kind, outbox, logger } = options;
  const leaseMs = 3 * options.timeoutMs;
  const stopping = new AbortController();
  let woken = false;
  let interruptPause: (() => void) | undefined;

  async function work(): Promise<void> {
    while (!stopping.signal.aborted) {
      woken = false;
      // oxlint-disable-next-line no-await-in-loop -- as below
      const task = await claim();
      // oxlint-disable-next-line no-await-in-loop -- one after the other is what a worker is for
      await (task === undefined ? pause() : runTask(options, task));
      // A backlog of tasks must not keep requests waiting.
      // oxlint-disable-next-line no-await-in-loop -- as above
      await setImmediate();
    }
  }

  async function claim(): Promise<Task | undefined> {
    try {
      return await outbox.claim(kind, leaseMs);
    } catch (error) {
      logger.error({ err: error, kind }, "the outbox cannot be read");
      return undefined;
    }
  }

  function pause(): Promise<void> {
    // Also while the outbox was being asked.
    if (woken || stopping.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, options.pollMs);
      interruptPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  const ended = work();
  return {
    wake() {
      woken = true;
      interruptPause?.();
    },
    async stop() {
      stopping.abort();
      interruptPause?.();
      await ended;
    },
  };
}

async function runTask(options: WorkerOptions, task: Task): Promise<void> {
  const { kind, logger, outbox, timeoutMs } = options;
  const described = { kind, idempotencyKey: task.idempotencyKey, attempts: task.attempts };
  try {
    const ran = options.run(task, AbortSignal.timeout(timeoutMs));
    // Not everything that is called heeds its signal.
    await withDeadline(ran, timeoutMs, () => new Error(`no answer within ${timeoutMs} ms`));
  } catch (error) {
    const reason = error instanceof Error ? error.message : "unknown error";
    try {
      if (task.attempts >= options.maxAttempts) {
        await outbox.bury(task.id, reason);
        logger.error({ ...described, err: error }, "task given up: an operator has to look at it");
      } else {
        const waitMs = backoffMs(options.backoff, task.attempts, options.random());
        await outbox.retry(task.id, waitMs, reason);
        logger.warn({ ...described, err: error, waitMs }, "task failed, it will be tried again");
      }
    } catch (unwritten) {
      // The lease of the claim brings the task back.
      logger.error({ ...described, err: unwritten }, "the outbox cannot be written");
    }
  }
}

/** The pause after attempt number `attempts` (1 is the first): doubles up to `maxMs`; `random` (0 to 1) takes off up to half. */
export function backoffMs({ baseMs, maxMs }: Backoff, attempts: number, random: number): number {
  const full = Math.min(maxMs, baseMs * 2 ** Math.min(attempts - 1, 30));
  return Math.round(full * (1 - random / 2));
}
