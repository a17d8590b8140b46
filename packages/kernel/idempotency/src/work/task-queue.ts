import { OptionError } from "@countersign/core";
import { option, readOptions, type OptionTable } from "@countersign/core/internal";
import type { Awaitable, DrainOptions, DrainReport, NoPromise, TransactionMode } from "../index.ts";
import { answerOf, readDrainTimeout, transactionOptions } from "../internal.ts";
import { assertWorked, type OutsideContext, type TaskWork } from "./task-attempt.ts";
import { workerOptions, type WorkerOptions } from "./worker-options.ts";
import { Worker } from "./worker.ts";
import type { ClaimedTask, NewTask, TaskAdded, WorkStores } from "./work-store.ts";

/** What a task has that ends with its own transaction. */
interface TaskTransaction<Tx> {
  /** The open transaction, as the app's own library knows it. Good until the function returns. */
  readonly tx: Tx;
}

/** What a task has that acts outside of the database. */
interface TaskContext<Tx> extends Omit<OutsideContext<Tx>, "commit"> {
  /** Writes in one transaction with the end of the task. At most once. Rejects, and nothing was written, when another worker has it. */
  commit<T>(this: void, work: (tx: Tx) => Awaitable<T>): Promise<T>;
}

/** Give either `exactlyOnce` or `atLeastOnce`. */
export interface TaskQueueOptions<Tx, Mode extends TransactionMode = TransactionMode> extends WorkerOptions {
  /** The app's own database, with a table of work. */
  readonly stores: WorkStores<Tx, Mode>;
  /** The name of the queue: 1 to 64 of `a-z`, `0-9`, `-`. */
  readonly queue: string;
  /** Does a task in the transaction in which it ends. A throw rolls back and repeats it. */
  readonly exactlyOnce?:
    | ((task: ClaimedTask, context: TaskTransaction<Tx>) => Mode extends "sync" ? NoPromise : unknown)
    | undefined;
  /** Does a task outside of the database, perhaps again after a crash. It ends by commit(), or when this returns. */
  readonly atLeastOnce?: ((task: ClaimedTask, context: TaskContext<Tx>) => unknown) | undefined;
  /** Called for each failed attempt, not awaited; `isDead` when no other follows. Default: a notice. */
  readonly onFailure?: ((task: ClaimedTask, error: unknown, isDead: boolean) => unknown) | undefined;
}

/** A promise where transactions are asynchronous. */
export type Answered<Mode extends TransactionMode, T> = Mode extends "sync"
  ? T
  : Mode extends "async"
    ? Promise<T>
    : Awaitable<T>;

/** Tasks that commit with what caused them, and are done later. Made by `createTaskQueue`. */
export interface TaskQueue<Tx, Mode extends TransactionMode = TransactionMode> {
  /** Adds tasks in the caller's transaction: they are done after its commit, or never. Ids must differ. Answers in their order. */
  add(tx: Tx, ...tasks: readonly NewTask[]): Answered<Mode, readonly TaskAdded[]>;
  /** Begins to work on the queue in this process; again without effect. */
  start(): void;
  /** Looks for due tasks now, rather than within `pollMs`. */
  wake(): void;
  /** Begins no task, awaits those running, aborts what still runs after `timeoutMs` (default 10,000). Resolves to how many did. */
  drain(this: void, options?: DrainOptions): Promise<DrainReport>;
}

const factory = "createTaskQueue";

export const table = {
  ...workerOptions.table,
  stores: option.own(workerOptions.readStores),
  queue: option.own(workerOptions.queueName()),
  exactlyOnce: option.optional(option.call()),
  atLeastOnce: option.optional(option.call()),
  onFailure: option.optional(option.call(), "a notice"),
} satisfies OptionTable<TaskQueueOptions<never>, unknown>;

/** Makes a queue on the app's own database. Throws an OptionError. */
export function createTaskQueue<Tx, Mode extends TransactionMode>(
  options: TaskQueueOptions<Tx, Mode>,
): TaskQueue<Tx, Mode> {
  const {
    stores: _read,
    exactlyOnce: _inside,
    atLeastOnce: _outside,
    onFailure: _failure,
    ...read
  } = readOptions(factory, table, options);
  workerOptions.assertFit(factory, read);
  const { stores, queue, onFailure } = options;
  const worker = new Worker<Tx>({
    factory,
    queue,
    stores,
    options: read,
    workOf: workOf(options),
    onFailure,
  });
  return {
    add(tx, ...tasks) {
      const added = stores.work.add(tx, queue, tasks);
      worker.wakeSoon();
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a store answers in its own mode
      return added as Answered<Mode, readonly TaskAdded[]>;
    },
    start: () => worker.start(),
    wake: () => worker.wake(),
    drain: async (drainOptions) => ({
      keys: await worker.drain(readDrainTimeout(drainOptions, factory)),
      claims: 0,
    }),
  };
}

function workOf<Tx, Mode extends TransactionMode>({
  stores,
  exactlyOnce,
  atLeastOnce,
}: TaskQueueOptions<Tx, Mode>): (task: ClaimedTask) => TaskWork<Tx> {
  if (exactlyOnce !== undefined && atLeastOnce === undefined) {
    transactionOptions.assertInMode(stores, exactlyOnce, factory, "exactlyOnce");
    return (task) => ({
      *inTransaction(tx) {
        assertWorked(yield* answerOf<unknown>(exactlyOnce(task, { tx })));
      },
    });
  }
  if (atLeastOnce !== undefined && exactlyOnce === undefined) {
    return (task) => ({ outside: (context) => atLeastOnce(task, taskContext(context)) });
  }
  throw new OptionError(factory, { what: "needs either exactlyOnce or atLeastOnce" });
}

/** With functions of the app in place of steps. */
function taskContext<Tx>(outside: OutsideContext<Tx>): TaskContext<Tx> {
  const { attempt, signal } = outside;
  return {
    attempt,
    signal,
    commit: (work) =>
      outside.commit(function* (tx) {
        return yield* answerOf(work(tx));
      }),
  };
}
