import type { Awaitable, TransactionMode, TransactionStores } from "../index.ts";

/** What is to be done later; it commits with what caused it. */
export interface NewTask {
  /** Identity in its queue, 1 to 512 characters: adding it again adds nothing. */
  readonly id: string;
  /** Tasks of one entity run one after another, in the order in which they were added; 1 to 512 characters. Default: no order. */
  readonly entity?: string | undefined;
  /** At most 1 MiB as UTF-8. */
  readonly body: string;
  /** Not before this time has passed, in milliseconds. Later tasks of its entity wait too. Default 0. */
  readonly delayMs?: number | undefined;
}

/** `known`: there is one with this id, open, dead or done, with this body. Nothing was added. */
export type TaskAdded = { readonly status: "added" } | { readonly status: "known"; readonly body: string };

export interface TaskClaim {
  /** 1 to 64 of `a-z`, `0-9`, `-`. */
  readonly queue: string;
  /** The most tasks to claim, 1 to 100. */
  readonly limit: number;
  /** Random identity of this claim. */
  readonly token: string;
  /** How long the tasks stay with this worker without extend(), in milliseconds. */
  readonly leaseMs: number;
}

/** A task as its owner names it. Another claim of it has another token. */
export interface OwnedTask {
  readonly queue: string;
  readonly id: string;
  readonly token: string;
}

export interface ClaimedTask extends OwnedTask {
  readonly entity: string | undefined;
  readonly body: string;
  /** The attempts that were begun, this one included. */
  readonly attempt: number;
  /** When it was added, in milliseconds since 1970 by the engine's clock. */
  readonly addedAtMs: number;
}

export interface TaskFailure {
  /** At most 2,000 characters. */
  readonly reason: string;
  /** When the next attempt may begin, in milliseconds from now. Undefined: none; the task is dead. */
  readonly retryInMs: number | undefined;
}

/** `open`: due, waiting or running. `dead`: given up, for an operator. `done`: remembered until its retention ends. */
type TaskState = "open" | "dead" | "done";

export interface TaskRecord {
  readonly queue: string;
  readonly id: string;
  readonly entity: string | undefined;
  readonly state: TaskState;
  readonly body: string;
  readonly attempts: number;
  /** The newest 20, oldest first. */
  readonly failures: readonly {
    /** In milliseconds since 1970. */
    readonly atMs: number;
    readonly attempt: number;
    readonly reason: string;
  }[];
  /** In milliseconds since 1970, as all times of a record. */
  readonly addedAtMs: number;
  /** Of an open task: not before. */
  readonly dueAtMs: number | undefined;
  /** Of a dead or done task. */
  readonly endedAtMs: number | undefined;
}

export interface QueueSummary {
  readonly queue: string;
  readonly paused: (WorkDecision & { readonly atMs: number }) | undefined;
  readonly open: number;
  /** Of the open ones: those that a worker has. */
  readonly running: number;
  readonly dead: number;
  readonly done: number;
  /** The age of the oldest open task, in milliseconds; undefined without one. */
  readonly oldestOpenMs: number | undefined;
}

export interface TaskQuery {
  readonly queue: string;
  readonly state?: TaskState | undefined;
  /** 1 to 1,000. */
  readonly limit: number;
  /** Of the page before. */
  readonly cursor?: string | undefined;
}

export interface TaskPage {
  /** Oldest first, by when they were added. */
  readonly tasks: readonly TaskRecord[];
  /** Undefined on the last page. */
  readonly cursor: string | undefined;
}

/** Which dead tasks run again. */
export type DeadTasks =
  | { readonly ids: readonly string[] }
  /** Those that were given up at this time or later, in milliseconds since 1970; all with 0. */
  | { readonly deadSinceMs: number };

/** An operator's decision about a queue or its dead tasks. */
export interface WorkDecision {
  /** Who decides, 1 to 128 characters. */
  readonly by: string;
  /** Why, 1 to 512 characters. */
  readonly note: string;
}

/** The newest time that was handled for a subject. */
export interface NewestMark {
  /** Keeps users of one table apart, 1 to 128 characters. */
  readonly scope: string;
  /** 1 to 512 characters. */
  readonly subject: string;
  /** In nanoseconds since 1970. */
  readonly at: bigint;
}

/**
 * Keeps tasks in a table of the user's own database. What is added commits with the caller's transaction, or never was. A task has at most
 * one owner at a time; of one entity at most one task is owned, and that is its oldest open one. `queue` names as in {@link TaskClaim}.
 * Times are the engine's own.
 */
export interface WorkStore<Tx, Mode extends TransactionMode = TransactionMode> {
  /** One word for metrics and spans, such as `postgresql`. */
  readonly engine: string;
  readonly mode: Mode;
  /** Adds tasks in the caller's transaction. Answers in their order. Their ids must differ. Waits for open transactions with the same. */
  add(tx: Tx, queue: string, tasks: readonly NewTask[]): Awaitable<readonly TaskAdded[]>;
  /** Takes due tasks, at most one of each entity, longest due first; none while the queue is paused. An attempt counts from here on. */
  claim(claim: TaskClaim): Promise<readonly ClaimedTask[]>;
  /** Renews the lease of these tasks. Resolves to the ids that are still owned by their tokens. */
  extend(tasks: readonly OwnedTask[], leaseMs: number): Promise<readonly string[]>;
  /** Ends a task as done in the caller's transaction, and lets its entity go on. False, and nothing written, when it is owned no more. */
  finish(tx: Tx, task: OwnedTask): Awaitable<boolean>;
  /** Ends an attempt: the task waits for the next one, or is dead and lets its entity go on. False when it is owned no more. */
  fail(task: OwnedTask, failure: TaskFailure): Promise<boolean>;
  /** Gives tasks back whose work had no effect: their attempt does not count. They are due after `delayMs`. */
  giveBack(tasks: readonly OwnedTask[], delayMs: number): Promise<void>;
  /** Writes the time as the newest of its subject; false, and nothing written, when a newer one is there. True for an equal one. */
  advance(tx: Tx, mark: NewestMark): Awaitable<boolean>;
  /** Of every queue that has tasks or is paused, by name. */
  summaries(): Promise<readonly QueueSummary[]>;
  read(queue: string, id: string): Promise<TaskRecord | undefined>;
  list(query: TaskQuery): Promise<TaskPage>;
  /** Makes dead tasks open and due, with their attempts at 0 and their failures kept. Resolves to how many. */
  retry(queue: string, which: DeadTasks): Promise<number>;
  /** Ends dead tasks as done without running them; the decision is kept as their last failure. Resolves to how many. */
  discard(queue: string, ids: readonly string[], decision: WorkDecision): Promise<number>;
  /** Lets no worker of any process claim tasks of the queue. Paused already: the newer decision counts. */
  pause(queue: string, decision: WorkDecision): Promise<void>;
  /** False when it was not paused. */
  resume(queue: string): Promise<boolean>;
  /** Removes done tasks whose retention has ended. Resolves to how many. */
  prune(): Promise<number>;
}

/** Stores with a table of work in the same database. */
export interface WorkStores<Tx, Mode extends TransactionMode = TransactionMode> extends TransactionStores<
  Tx,
  Mode
> {
  readonly work: WorkStore<Tx, Mode>;
}
