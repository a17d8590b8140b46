import { encodeText, leaseExpired } from "@countersign/idempotency/store";
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
  WorkGate,
  failuresAfter,
  laneOf,
  sortableNanoseconds,
  type TaskFailure,
  type NewestMark,
  type DeadTasks,
} from "@countersign/idempotency/work/store";
import {
  type SqliteDatabase,
  type SqliteStatement,
  assertConnection,
  assertInTransaction,
  assertNoTransaction,
  endTransaction,
  integerOf,
  singleRow,
} from "./connection.ts";
import { whenWritable } from "./durability.ts";
import { takeWriteLock } from "./key-table.ts";
import { factoryName, type ResolvedSqliteOptions } from "./options.ts";
import { PrunedTable } from "./pruning.ts";
import type { PrunedBatch } from "@countersign/idempotency/store";
import {
  type StoredTask,
  numberBefore,
  queueSummary,
  storedTask,
  taskPage,
  taskRecord,
} from "./work-records.ts";
import { type WorkStatements, prepareRemoval, prepareWork } from "./work-statements.ts";

const name = "sqlite work store";

/** There is one writer at a time, so a lane exists exactly while it has an open task, and its time is always that of its head. */
export class WorkTable<Db extends SqliteDatabase> implements WorkStore<Db, "sync"> {
  readonly engine = "sqlite";
  readonly mode = "sync";
  readonly #database: Db;
  readonly #now: () => number | null;
  readonly #sql: WorkStatements;
  readonly #lockSql: string;
  readonly #gate: WorkGate;
  readonly #done: DoneTasks;

  constructor(database: Db, options: ResolvedSqliteOptions) {
    this.#database = database;
    this.#now = options.now;
    this.#sql = prepareWork(options);
    this.#lockSql = takeWriteLock(options.table);
    this.#gate = new WorkGate(name, () => assertNoTransaction(name, database));
    this.#done = new DoneTasks(options);
  }

  close(): void {
    this.#gate.close();
    this.#done.close();
  }

  add(tx: Db, queue: string, tasks: readonly NewTask[]): readonly TaskAdded[] {
    this.#gate.assertAdd(queue, tasks);
    this.#enter(tx);
    const nowMs = this.#nowMs();
    return tasks.map((task) => this.#add(queue, task, nowMs));
  }

  async claim(claim: TaskClaim): Promise<readonly ClaimedTask[]> {
    this.#gate.assertClaim(claim);
    return this.#write((nowMs) =>
      this.#sql.dueLanes.all(claim.queue, nowMs, claim.limit).map((found) => {
        const { lane, owned } = singleRow(found);
        // Its owner fell silent.
        if (owned !== null) this.#note(this.#numbered(integerOf(owned)), leaseExpired, nowMs);
        return this.#own(claim, String(lane), nowMs);
      }),
    );
  }

  async extend(tasks: readonly OwnedTask[], leaseMs: number): Promise<readonly string[]> {
    this.#gate.assertExtend(tasks, leaseMs);
    return this.#write((nowMs) => {
      const kept = tasks.filter((task) => {
        const owned = this.#owned(task);
        if (owned === undefined) return false;
        this.#sql.lease.run(nowMs + leaseMs, task.queue, owned.lane);
        return true;
      });
      return kept.map(({ id }) => id);
    });
  }

  finish(tx: Db, task: OwnedTask): boolean {
    this.#gate.assertOwnerIn(task);
    this.#enter(tx);
    const owned = this.#owned(task);
    if (owned === undefined) return false;
    this.#end(task.queue, owned, "done", this.#nowMs());
    return true;
  }

  async fail(task: OwnedTask, { reason, retryInMs }: TaskFailure): Promise<boolean> {
    this.#gate.assertFail(task, { reason, retryInMs });
    return this.#write((nowMs) => {
      const owned = this.#owned(task);
      if (owned === undefined) return false;
      this.#note(owned, reason, nowMs);
      if (retryInMs === undefined) this.#end(task.queue, owned, "dead", nowMs);
      else {
        this.#sql.delay.run(nowMs + retryInMs, owned.number);
        this.#release(task.queue, owned.lane, nowMs);
      }
      return true;
    });
  }

  async giveBack(tasks: readonly OwnedTask[], delayMs: number): Promise<void> {
    this.#gate.assertGiveBack(tasks, delayMs);
    await this.#write((nowMs) => {
      for (const task of tasks) {
        const owned = this.#owned(task);
        if (owned === undefined) continue;
        this.#sql.uncount.run(nowMs + delayMs, owned.number);
        this.#release(task.queue, owned.lane, nowMs);
      }
    });
  }

  advance(tx: Db, { scope, subject, at }: NewestMark): boolean {
    this.#gate.assertAdvance({ scope, subject, at });
    this.#enter(tx);
    return changed(this.#sql.advance, encodeText(scope), encodeText(subject), sortableNanoseconds(at));
  }

  async summaries(): Promise<readonly QueueSummary[]> {
    this.#gate.assertUsable();
    const nowMs = this.#nowMs();
    return this.#sql.summaries.all(nowMs).map((row) => queueSummary(row, nowMs));
  }

  async read(queue: string, id: string): Promise<TaskRecord | undefined> {
    this.#gate.assertRead(queue, id);
    const task = this.#named(queue, id);
    return task && taskRecord(task);
  }

  async list({ queue, state, limit, cursor }: TaskQuery): Promise<TaskPage> {
    this.#gate.assertList({ queue, state, limit });
    const from = [queue, numberBefore(name, cursor)];
    const page = this.#sql.pages[state ?? "all"];
    // One row more tells whether another page follows.
    const rows =
      state === undefined ? page.all(...from, ...from, ...from, limit + 1) : page.all(...from, limit + 1);
    return taskPage(rows, limit);
  }

  async retry(queue: string, which: DeadTasks): Promise<number> {
    this.#gate.assertRetry(queue, which);
    return this.#write((nowMs) => {
      const dead = this.#deadTasks(queue, which);
      for (const { number, lane } of dead) {
        this.#sql.reopen.run(nowMs, number);
        this.#sql.addLane.run(queue, lane, nowMs);
        // It is the lane's head now. An owner of a later task keeps the lane until that one's end.
        if (this.#sql.isOwned.get(queue, lane) === undefined) this.#release(queue, lane, nowMs);
      }
      return dead.length;
    });
  }

  async discard(queue: string, ids: readonly string[], decision: WorkDecision): Promise<number> {
    this.#gate.assertDiscard(queue, ids, decision);
    return this.#write((nowMs) => {
      const dead = this.#deadTasks(queue, { ids });
      for (const task of dead) {
        this.#note(task, `discarded by ${decision.by}: ${decision.note}`, nowMs);
        this.#sql.end.run("done", nowMs, nowMs, task.number);
      }
      return dead.length;
    });
  }

  async pause(queue: string, decision: WorkDecision): Promise<void> {
    this.#gate.assertPause(queue, decision);
    const kept = [encodeText(decision.by), encodeText(decision.note)];
    await this.#write((nowMs) => this.#sql.pause.run(queue, nowMs, ...kept));
  }

  async resume(queue: string): Promise<boolean> {
    this.#gate.assertResume(queue);
    return this.#write(() => changed(this.#sql.resume, queue));
  }

  async prune(): Promise<number> {
    return this.#done.prune();
  }

  #add(queue: string, { id, entity, body, delayMs = 0 }: NewTask, nowMs: number): TaskAdded {
    const [storedId, lane] = [encodeText(id), encodeText(laneOf({ id, entity }))];
    const dueAtMs = nowMs + delayMs;
    if (changed(this.#sql.addTask, queue, storedId, lane, encodeText(body), nowMs, dueAtMs)) {
      this.#sql.addLane.run(queue, lane, dueAtMs);
      return { status: "added" };
    }
    return { status: "known", body: taskRecord(storedTask(this.#sql.named.get(queue, storedId))).body };
  }

  #own({ queue, token, leaseMs }: TaskClaim, lane: string, nowMs: number): ClaimedTask {
    const head = storedTask(this.#sql.head.get(queue, lane));
    this.#sql.begin.run(head.number);
    this.#sql.ownLane.run(encodeText(token), head.number, nowMs + leaseMs, queue, lane);
    const { id, entity, body, attempts, addedAtMs } = taskRecord(head);
    return { queue, id, token, entity, body, attempt: attempts + 1, addedAtMs };
  }

  #end(queue: string, { number, lane }: StoredTask, state: "dead" | "done", nowMs: number): void {
    this.#sql.end.run(state, nowMs, nowMs, number);
    this.#release(queue, lane, nowMs);
  }

  /** Gives the lane to its head, or removes it without one. Due no earlier than now, so that other lanes have their turn. */
  #release(queue: string, lane: string, nowMs: number): void {
    const head = this.#sql.head.get(queue, lane);
    if (head === undefined) this.#sql.removeLane.run(queue, lane);
    else this.#sql.freeLane.run(Math.max(nowMs, integerOf(singleRow(head)["due_at"])), queue, lane);
  }

  #note({ number, attempts, failures }: StoredTask, reason: string, atMs: number): void {
    this.#sql.note.run(failuresAfter(failures, { atMs, attempt: attempts, reason }), number);
  }

  #owned({ queue, id, token }: OwnedTask): StoredTask | undefined {
    const row = this.#sql.ownedTask.get(queue, encodeText(id), encodeText(token));
    return row === undefined ? undefined : storedTask(row);
  }

  #named(queue: string, id: string): StoredTask | undefined {
    const row = this.#sql.named.get(queue, encodeText(id));
    return row === undefined ? undefined : storedTask(row);
  }

  #numbered(number: number): StoredTask {
    return storedTask(this.#sql.numbered.get(number));
  }

  #deadTasks(queue: string, which: DeadTasks): readonly StoredTask[] {
    if ("deadSinceMs" in which) return this.#sql.deadSince.all(queue, which.deadSinceMs).map(storedTask);
    return [...new Set(which.ids)].flatMap((id) => {
      const task = this.#named(queue, id);
      return task?.row["state"] === "dead" ? [task] : [];
    });
  }

  /** Runs `work` in a transaction of its own. */
  async #write<T>(work: (nowMs: number) => T): Promise<Exclude<T, PromiseLike<unknown>>> {
    const [database, assertUsable] = [this.#database, () => this.#gate.assertUsable()];
    return whenWritable({ name, database, assertUsable }, () =>
      endTransaction(name, database, () => work(this.#nowMs())),
    );
  }

  #enter(tx: Db): void {
    assertConnection(name, this.#database, tx);
    assertInTransaction(name, this.#database);
    // Where BEGIN has not: in libsql a prepared statement that met SQLITE_BUSY would make later COMMITs fail.
    this.#database.exec(this.#lockSql);
  }

  #nowMs(): number {
    return this.#now() ?? integerOf(singleRow(this.#sql.clock.get())["now_ms"]);
  }
}

class DoneTasks extends PrunedTable {
  readonly #remove: SqliteStatement;

  constructor(options: ResolvedSqliteOptions) {
    super(name, factoryName, options);
    this.#remove = prepareRemoval(options.database, options.table);
  }

  protected removeBatch(): PrunedBatch {
    return this.removeWhole(this.#remove);
  }
}

function changed(statement: SqliteStatement, ...parameters: Parameters<SqliteStatement["run"]>): boolean {
  return Number(statement.run(...parameters).changes) > 0;
}
