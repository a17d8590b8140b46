import { randomBytes } from "node:crypto";
import {
  decodeText,
  encodeText,
  runSteps,
  runStepsNow,
  type Returned,
  type Row,
  type Steps,
} from "@countersign/idempotency/store";
import type { TransactionMode } from "@countersign/idempotency";
import type {
  ClaimedTask,
  NewTask,
  OwnedTask,
  QueueSummary,
  TaskAdded,
  TaskClaim,
  TaskPage,
  TaskQuery,
  TaskRecord,
  WorkDecision,
  WorkStore,
} from "@countersign/idempotency/work";
import {
  decideLane,
  discardedTask,
  doneTask,
  failedTask,
  laneOf,
  lapsedTask,
  returnedTask,
  sortableNanoseconds,
  WorkGate,
  type DeadTasks,
  type LaneDecision,
  type NewestMark,
  type SeenTask,
  type TaskChange,
  type TaskFailure,
} from "@countersign/idempotency/work/store";
import type { Chain } from "./chain.ts";
import type { TaskDialect } from "./dialect.ts";
import { digestOf, laneDigest } from "./digests.ts";
import {
  claimedTask,
  cursorOf,
  dueLane,
  entityIn,
  firstPosition,
  positionOf,
  queueSummaries,
  seenTask,
  taskRecord,
  type DueLane,
} from "./task-rows.ts";
import { TaskStatements, type AddedTask, type EndedAttempt } from "./task-statements.ts";
import type { StepWithin, TaskEngine } from "./task-engine.ts";
import { integerOf } from "../sql/values.ts";

// Between two batches nothing is locked.
const operatorBatchSize = 500;

// Engines count the values of a statement.
const mostAdded = 1_000;

// Each time a task that was known has been pruned before its body was read.
const mostTries = 10;

/** A lane that is due, with what a claim does with it. */
interface DecidedLane extends DueLane, LaneDecision {}

/** The store of work on tables of tasks. */
export class TaskStore<Tx, Mode extends TransactionMode> implements WorkStore<Tx, Mode> {
  readonly engine: string;
  readonly mode: Mode;
  readonly #engine: TaskEngine<Tx, Mode>;
  readonly #gate: WorkGate;
  readonly #readText: TaskDialect["readText"];

  constructor(engine: TaskEngine<Tx, Mode>) {
    this.engine = engine.engine;
    this.mode = engine.mode;
    this.#engine = engine;
    this.#gate = new WorkGate(engine.name, () => engine.assertUsable());
    this.#readText = (value) => engine.dialect.readText(value);
  }

  add(tx: Tx, queue: string, tasks: readonly NewTask[]): Returned<Mode, readonly TaskAdded[]> {
    return this.#within(
      () => this.#gate.assertAdd(queue, tasks),
      () => this.#add(tx, queue, tasks),
    );
  }

  finish(tx: Tx, task: OwnedTask): Returned<Mode, boolean> {
    return this.#within(
      () => this.#gate.assertOwnerIn(task),
      () => this.#finish(tx, task),
    );
  }

  advance(tx: Tx, mark: NewestMark): Returned<Mode, boolean> {
    return this.#within(
      () => this.#gate.assertAdvance(mark),
      () => this.#advance(tx, mark),
    );
  }

  async claim(claim: TaskClaim): Promise<readonly ClaimedTask[]> {
    this.#gate.assertClaim(claim);
    const { queue, limit } = claim;
    // As many lanes may be empty as are due.
    let most = 2 * limit + 8;
    let last = firstPosition;
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- goes on behind what was found
      const rows = await this.#engine.look(this.#looking.due(queue, most, last));
      const lanes = rows.map((row) => dueLane(row, this.#readText));
      // oxlint-disable-next-line no-await-in-loop -- as above
      const tasks = await this.#take(claim, lanes);
      const behind = lanes.at(-1);
      if (tasks.length > 0 || behind === undefined || lanes.length < most) return tasks;
      last = { at: behind.dueUs, digest: behind.lane };
      // Others want the same.
      most = 4 * limit + 32;
    }
  }

  async extend(tasks: readonly OwnedTask[], leaseMs: number): Promise<readonly string[]> {
    this.#gate.assertExtend(tasks, leaseMs);
    if (tasks.length === 0) return [];
    const rows = await this.#engine.write([this.#writing.extend(tasks, leaseMs)]);
    const renewed = new Set(rows.map((row) => String(row["hex"])));
    const missing = tasks.filter((task) => !renewed.has(digestIn(task)));
    const owned = new Set((await this.#owned(missing)).map(({ task }) => task));
    return tasks
      .filter((task) => renewed.has(digestIn(task)) || owned.has(digestIn(task)))
      .map(({ id }) => id);
  }

  async fail(task: OwnedTask, failure: TaskFailure): Promise<boolean> {
    this.#gate.assertFail(task, failure);
    const ended = await this.#end([task], (seen) => failedTask(seen, failure));
    return ended > 0;
  }

  async giveBack(tasks: readonly OwnedTask[], delayMs: number): Promise<void> {
    this.#gate.assertGiveBack(tasks, delayMs);
    await this.#end(tasks, (seen) => returnedTask(seen, delayMs));
  }

  async summaries(): Promise<readonly QueueSummary[]> {
    this.#gate.assertUsable();
    const { counts, pauses } = this.#looking;
    const [counted, paused] = [await this.#engine.look(counts), await this.#engine.look(pauses)];
    return queueSummaries(counted, paused, this.#readText);
  }

  async read(queue: string, id: string): Promise<TaskRecord | undefined> {
    this.#gate.assertRead(queue, id);
    const [row] = await this.#engine.look(this.#looking.read(queue, id));
    return row === undefined ? undefined : taskRecord(row, this.#readText);
  }

  async list(query: TaskQuery): Promise<TaskPage> {
    this.#gate.assertList(query);
    const { queue, state, limit, cursor } = query;
    // One row more than asked for tells whether another page follows.
    const page = this.#looking.page(queue, state, limit + 1, positionOf(this.#engine.name, cursor));
    const rows = await this.#engine.look(page);
    const listed = rows.slice(0, limit);
    const last = rows.length > limit ? listed.at(-1) : undefined;
    return { tasks: listed.map((row) => taskRecord(row, this.#readText)), cursor: last && cursorOf(last) };
  }

  async retry(queue: string, which: DeadTasks): Promise<number> {
    this.#gate.assertRetry(queue, which);
    const dead = (await this.#dead(queue, which)).map((row) => {
      const id = decodeText(this.#readText(row["id"]));
      return {
        task: String(row["task"]),
        lane: String(row["lane"]),
        name: laneOf({ id, entity: entityIn(row, this.#readText) }),
        number: integerOf(row["number"]),
      };
    });
    return this.#inBatches(dead, (batch) => this.#writing.retry(queue, batch));
  }

  async discard(queue: string, ids: readonly string[], decision: WorkDecision): Promise<number> {
    this.#gate.assertDiscard(queue, ids, decision);
    const dead = (await this.#dead(queue, { ids })).map((row) => ({
      task: String(row["task"]),
      endedUs: integerOf(row["ended_us"]),
      change: discardedTask(seenTask(row, this.#readText), decision),
    }));
    return this.#inBatches(dead, (batch) => this.#writing.discard(batch));
  }

  async pause(queue: string, decision: WorkDecision): Promise<void> {
    this.#gate.assertPause(queue, decision);
    await this.#engine.write([this.#writing.pause(queue, decision)]);
  }

  async resume(queue: string): Promise<boolean> {
    this.#gate.assertResume(queue);
    return (await this.#engine.write([this.#writing.resume(queue)])).length > 0;
  }

  async prune(): Promise<number> {
    this.#gate.assertUsable();
    return this.#engine.prune();
  }

  /** Ends the timers; the caller's connections stay open. A later call throws. */
  close(): void {
    this.#gate.close();
    this.#engine.close();
  }

  *#add(tx: Tx, queue: string, tasks: readonly NewTask[]): Steps<readonly TaskAdded[]> {
    const within = { tx, step: "add", isHandlers: true } as const;
    const named = tasks.map((task) => ({
      task,
      digest: digestOf(queue, task.id),
      lane: laneDigest(queue, task),
    }));
    const answers = new Map<string, TaskAdded>();
    for (let start = 0; start < named.length; start += mostAdded) {
      yield* this.#addBatch(within, queue, named.slice(start, start + mostAdded), answers);
    }
    return named.map(({ digest }) => answers.get(digest) ?? neverAdded(this.#engine.name));
  }

  /** Adds what is unknown, and reads what is known, by another statement, which sees what the first one has waited for. */
  *#addBatch(
    within: StepWithin<Tx>,
    queue: string,
    tasks: readonly AddedTask[],
    answers: Map<string, TaskAdded>,
  ): Steps<void> {
    let missing = tasks;
    for (let tried = 0; tried < mostTries && missing.length > 0; tried += 1) {
      const mark = randomBytes(16).toString("hex");
      const added = yield* this.#engine.within(within, this.#inside.add(queue, missing, mark));
      for (const row of added) answers.set(String(row["hex"]), { status: "added" });
      const others = missing.filter(({ digest }) => !answers.has(digest));
      if (others.length === 0) return;
      const known = yield* this.#engine.within(within, this.#inside.known(others));
      for (const row of known) {
        answers.set(String(row["hex"]), { status: "known", body: decodeText(this.#readText(row["body"])) });
      }
      missing = others.filter(({ digest }) => !answers.has(digest));
    }
  }

  *#finish(tx: Tx, task: OwnedTask): Steps<boolean> {
    // The worker's own, after the handler has settled.
    const within = { tx, step: "finish", isHandlers: false } as const;
    const ended = yield* this.#engine.within(within, this.#inside.finish(task, doneTask));
    return ended.length > 0;
  }

  *#advance(tx: Tx, mark: NewestMark): Steps<boolean> {
    const within = { tx, step: "advance", isHandlers: true } as const;
    const [row] = yield* this.#engine.within(within, this.#inside.advance(mark));
    return row !== undefined && this.#readText(row["newest_at"]) === sortableNanoseconds(mark.at);
  }

  /** Decides on due lanes, and writes that where they are as they were read. */
  async #take(claim: TaskClaim, lanes: readonly DueLane[]): Promise<readonly ClaimedTask[]> {
    const decided = lanes.map((lane) => ({ ...lane, ...decideLane(lane.seen, lane.nowUs) }));
    const ready = decided.filter(({ next }) => next === "take");
    // Of one time: in the order of adding.
    ready.sort(
      (one, other) => one.dueUs - other.dueUs || (one.head?.number ?? 0) - (other.head?.number ?? 0),
    );
    let others = decided.filter(({ next }) => next !== "take");
    const tasks: ClaimedTask[] = [];
    let taken = 0;
    do {
      const room = claim.limit - tasks.length;
      // oxlint-disable-next-line no-await-in-loop -- in the place of those that others have
      const free = await this.#lapse([...ready.slice(taken, taken + room), ...others]);
      // oxlint-disable-next-line no-await-in-loop -- as above
      tasks.push(...(await this.#write(claim, free)));
      taken += room;
      others = [];
    } while (tasks.length < claim.limit && taken < ready.length);
    return tasks;
  }

  async #write(claim: TaskClaim, decided: readonly DecidedLane[]): Promise<readonly ClaimedTask[]> {
    const heads = decided.flatMap(({ lane, version, head, next }) =>
      next === "take" && head !== undefined
        ? [{ lane, version, head: head.task, attempts: head.attempts }]
        : [],
    );
    const empty = decided.filter(({ next }) => next === "remove");
    const later = decided.flatMap(({ lane, version, next }) =>
      typeof next === "object" ? [{ lane, version, dueUs: next.dueUs }] : [],
    );
    const statements = this.#writing;
    const chains = [
      ...(heads.length === 0 ? [] : [statements.take(heads, claim.token, claim.leaseMs)]),
      ...(empty.length === 0 ? [] : [statements.remove(empty)]),
      ...(later.length === 0 ? [] : [statements.postpone(later)]),
    ];
    const rows = chains.length === 0 ? [] : await this.#engine.write(chains);
    const byLane = new Map(rows.map((row) => [String(row["hex"]), row]));
    return heads.flatMap(({ lane, attempts }) => {
      const row = byLane.get(lane);
      return row === undefined ? [] : [claimedTask(row, claim, attempts + 1, this.#readText)];
    });
  }

  /** Ends the attempts of silent owners. Leaves out lanes that others have changed since, or that their owners renew. */
  async #lapse(decided: readonly DecidedLane[]): Promise<readonly DecidedLane[]> {
    const lapsed = decided.flatMap(({ lane, version, owned, isLapsed }) =>
      isLapsed && owned !== undefined ? [{ ...owned, lane, version, change: lapsedTask(owned) }] : [],
    );
    if (lapsed.length === 0) return decided;
    const rows = await this.#engine.write([this.#writing.lapse(lapsed)]);
    const ended = new Set(rows.map((row) => String(row["hex"])));
    return decided.flatMap((each) => {
      if (!each.isLapsed) return [each];
      return ended.has(each.lane) ? [{ ...each, version: each.version + 1 }] : [];
    });
  }

  /** Ends the attempts that are owned. Resolves to how many. */
  async #end(tasks: readonly OwnedTask[], changeOf: (seen: SeenTask) => TaskChange): Promise<number> {
    const attempts = (await this.#owned(tasks)).map(({ task, lane, token, seen }) => ({
      task,
      lane,
      token,
      change: changeOf(seen),
    }));
    if (attempts.length === 0) return 0;
    return (await this.#engine.write([this.#writing.end(attempts)])).length;
  }

  /** Those of the tasks that their tokens own, as one statement sees them. */
  async #owned(
    tasks: readonly OwnedTask[],
  ): Promise<readonly (Omit<EndedAttempt, "change"> & { readonly seen: SeenTask })[]> {
    if (tasks.length === 0) return [];
    const rows = await this.#engine.look(this.#looking.owned(tasks));
    const byTask = new Map(rows.map((row) => [String(row["task"]), row]));
    return tasks.flatMap(({ queue, id, token }) => {
      const row = byTask.get(digestOf(queue, id));
      if (row === undefined || row["token"] === null || this.#readText(row["token"]) !== encodeText(token))
        return [];
      const seen = seenTask(row, this.#readText);
      return [{ task: String(row["task"]), lane: String(row["lane"]), token, seen }];
    });
  }

  async #dead(queue: string, which: DeadTasks): Promise<readonly Row[]> {
    if ("ids" in which && which.ids.length === 0) return [];
    return this.#engine.look(this.#looking.dead(queue, which));
  }

  async #inBatches<T>(rows: readonly T[], chainOf: (batch: readonly T[]) => Chain): Promise<number> {
    let count = 0;
    for (let start = 0; start < rows.length; start += operatorBatchSize) {
      // oxlint-disable-next-line no-await-in-loop -- one batch at a time
      const written = await this.#engine.write([chainOf(rows.slice(start, start + operatorBatchSize))]);
      count += written.length;
    }
    return count;
  }

  /** Checks and runs in one: a store with promises rejects where one without throws. */
  #within<T>(check: () => void, steps: () => Steps<T>): Returned<Mode, T> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the mode says
    return (this.mode === "sync" ? runNow(check, steps) : runLater(check, steps)) as Returned<Mode, T>;
  }

  get #looking(): TaskStatements {
    return this.#statements("look");
  }

  get #writing(): TaskStatements {
    return this.#statements("write");
  }

  get #inside(): TaskStatements {
    return this.#statements("within");
  }

  #statements(of: "look" | "write" | "within"): TaskStatements {
    const { dialect, names, taskRetentionMs } = this.#engine;
    return new TaskStatements({ dialect, names, taskRetentionMs, ...this.#engine.moment(of) });
  }
}

function digestIn({ queue, id }: OwnedTask): string {
  return digestOf(queue, id);
}

function neverAdded(store: string): never {
  throw new Error(`${store}: a task was removed while it was added, again and again`);
}

function runNow<T>(check: () => void, steps: () => Steps<T>): T {
  check();
  return runStepsNow(steps());
}

async function runLater<T>(check: () => void, steps: () => Steps<T>): Promise<T> {
  check();
  return runSteps(steps());
}
