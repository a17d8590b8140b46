import { damagedCursor, keyBefore, type Row } from "@countersign/idempotency/store";
import type {
  QueueSummary,
  TaskPage,
  TaskQuery,
  TaskRecord,
  WorkDecision,
  WorkStore,
} from "@countersign/idempotency/work";
import { failuresAfter, WorkGate } from "@countersign/idempotency/work/store";
import type { Engine } from "./engine.ts";
import type { ResolvedMysqlOptions } from "./options.ts";
import { PrunedTable } from "./pruning.ts";
import { taskColumns, taskRecord, textOf } from "./task-row.ts";
import { bytesOf, digestOf, hexOf, integerOf, storedBytes, storedText } from "./values.ts";
import { lanesStatements } from "./work-adding.ts";
import { workStatements } from "./work-statements.ts";

type DeadTasks = Parameters<WorkStore<never>["retry"]>[1];

export const workName = "mysql work store";

// Between two batches nothing is locked.
const operatorBatchSize = 500;

/** What operators do with queues and tasks. */
export abstract class WorkOperations<Tx> extends PrunedTable<Tx> {
  protected readonly tasks = new WorkGate(workName);

  constructor(engine: Engine<Tx>, options: ResolvedMysqlOptions<Tx>) {
    super(workName, engine, options, {
      table: options.names.tasks,
      isExpired: (now) => `until_us <= ${now}`,
      columns: [],
    });
  }

  async summaries(): Promise<readonly QueueSummary[]> {
    this.tasks.assertUsable();
    const { counts, pauses } = this.statements();
    const counted = new Map<string, Map<string, number>>();
    const [rows, paused] = await Promise.all([this.alone(counts, []), this.alone(pauses, [])]);
    const ofQueue = (row: Row): Map<string, number> => {
      const queue = storedText(row["queue"]);
      const found = counted.get(queue) ?? new Map<string, number>();
      counted.set(queue, found);
      return found;
    };
    for (const row of rows) ofQueue(row).set(String(row["fact"]), integerOf(row["value"]));
    const pausedBy = new Map(paused.map((row) => [storedText(row["queue"]), pauseOf(row)]));
    for (const row of paused) ofQueue(row);
    const queues = [...counted];
    // oxlint-disable-next-line unicorn/no-array-sort -- toSorted is newer than the library that the compiler knows
    queues.sort(([one], [other]) => (one < other ? -1 : 1));
    return queues.map(([queue, facts]) => ({
      queue,
      paused: pausedBy.get(queue),
      open: facts.get("open") ?? 0,
      running: facts.get("running") ?? 0,
      dead: facts.get("dead") ?? 0,
      done: facts.get("done") ?? 0,
      oldestOpenMs: facts.get("oldest"),
    }));
  }

  async read(queue: string, id: string): Promise<TaskRecord | undefined> {
    this.tasks.assertRead(queue, id);
    const [row] = await this.alone(this.statements().read, [digestOf(queue, id)]);
    return row === undefined ? undefined : taskRecord(row);
  }

  async list(query: TaskQuery): Promise<TaskPage> {
    this.tasks.assertList(query);
    const { queue, state, limit, cursor } = query;
    const { number, digest } = positionOf(cursor);
    const rows = await this.alone(this.#pageStatement(state, limit), [queue, number, number, digest]);
    const listed = rows.slice(0, limit);
    const last = rows.length > limit ? listed.at(-1) : undefined;
    return { tasks: listed.map(taskRecord), cursor: last && cursorOf(last) };
  }

  async retry(queue: string, which: DeadTasks): Promise<number> {
    this.tasks.assertRetry(queue, which);
    const dead = await this.#find(queue, which);
    let count = 0;
    for (let start = 0; start < dead.length; start += operatorBatchSize) {
      // oxlint-disable-next-line no-await-in-loop -- one batch at a time
      count += await this.#reopen(queue, dead.slice(start, start + operatorBatchSize));
    }
    return count;
  }

  async discard(queue: string, ids: readonly string[], decision: WorkDecision): Promise<number> {
    this.tasks.assertDiscard(queue, ids, decision);
    const reason = `discarded by ${decision.by}: ${decision.note}`;
    let count = 0;
    for (let start = 0; start < ids.length; start += operatorBatchSize) {
      const digests = ids.slice(start, start + operatorBatchSize).map((id) => digestOf(queue, id));
      // oxlint-disable-next-line no-await-in-loop -- one batch at a time
      count += await this.#discard(digests, reason);
    }
    return count;
  }

  async pause(queue: string, decision: WorkDecision): Promise<void> {
    this.tasks.assertPause(queue, decision);
    const told = [bytesOf(decision.by), bytesOf(decision.note)];
    await this.server.change(workName, this.statements().pause, [queue, ...told, ...told]);
  }

  async resume(queue: string): Promise<boolean> {
    this.tasks.assertResume(queue);
    return (await this.server.change(workName, this.statements().resume, [queue])) > 0;
  }

  override close(): void {
    super.close();
    this.tasks.close();
  }

  protected statements(): ReturnType<typeof workStatements> {
    return workStatements(this.options, this.now());
  }

  /** One row more than asked for tells whether another page follows. */
  #pageStatement(state: TaskRecord["state"] | undefined, limit: number): string {
    const [index, condition] = state === undefined ? ["pages", ""] : ["states", ` AND state = '${state}'`];
    return `SELECT digest, number, ${taskColumns} FROM ${this.options.names.tasks} FORCE INDEX (${index})
WHERE queue = ?${condition} AND number >= ? AND (number > ? OR digest > ?) ORDER BY number, digest LIMIT ${limit + 1}`;
  }

  async #find(queue: string, which: DeadTasks): Promise<readonly Row[]> {
    const { deadOf, deadSince } = this.statements();
    if ("deadSinceMs" in which) return this.alone(deadSince, [queue, which.deadSinceMs]);
    if (which.ids.length === 0) return [];
    const digests = which.ids.map((id) => digestOf(queue, id));
    return this.alone(deadOf(digests.length), digests);
  }

  async #reopen(queue: string, dead: readonly Row[]): Promise<number> {
    return this.server.run(workName, async (tx) => {
      const wanted = { queue, digests: dead.map((row) => storedBytes(row["lane"])), numbers: 0 };
      // A lane that waits for a later task need not: the one that was dead comes first.
      const now = this.now();
      const due = `IF(token IS NULL, LEAST(due_us, ${now}), due_us)`;
      await this.server.send(tx, workName, lanesStatements({ ...this.options, now }, { ...wanted, due }));
      const rows = await this.#lockDead(
        tx,
        dead.map((row) => storedBytes(row["digest"])),
      );
      const digests = rows.map((row) => storedBytes(row["digest"]));
      if (digests.length > 0) await this.query(tx, this.statements().reopen(digests.length), digests);
      return digests.length;
    });
  }

  async #discard(digests: readonly Buffer[], reason: string): Promise<number> {
    return this.server.run(workName, async (tx) => {
      const rows = await this.#lockDead(tx, digests);
      for (const row of rows) {
        const failures = failuresWith(row, reason);
        // oxlint-disable-next-line no-await-in-loop -- one statement after the other
        await this.query(tx, this.statements().discard, [failures, storedBytes(row["digest"])]);
      }
      return rows.length;
    });
  }

  #lockDead(tx: Tx, digests: readonly Buffer[]): Promise<readonly Row[]> {
    return this.query(tx, this.statements().lockDead(digests.length), digests);
  }

  /** In a transaction of the store's own. */
  protected query(tx: Tx, text: string, values: Parameters<Engine<Tx>["alone"]>[2]): Promise<readonly Row[]> {
    return this.server.database.query(tx, text, values);
  }
}

/** What a row's failures are after another one, of its last attempt. */
export function failuresWith(row: Row, reason: string): Buffer {
  const failure = { atMs: integerOf(row["now_ms"]), attempt: integerOf(row["attempts"]), reason };
  return Buffer.from(failuresAfter(storedText(row["failures"]), failure), "utf8");
}

function pauseOf(row: Row): QueueSummary["paused"] {
  return { by: textOf(row["paused_by"]), note: textOf(row["note"]), atMs: integerOf(row["paused_ms"]) };
}

function cursorOf(row: Row): string {
  return Buffer.from(`${integerOf(row["number"])} ${hexOf(row["digest"])}`).toString("base64url");
}

/** Where a page begins. Throws a TypeError on a damaged cursor. */
function positionOf(cursor: string | undefined): { readonly number: number; readonly digest: Buffer } {
  if (cursor === undefined) return { number: 0, digest: Buffer.alloc(0) };
  const [, number, digest] = /^(\d{1,16}) ([0-9a-f]{64})$/.exec(keyBefore(workName, cursor)) ?? [];
  if (number === undefined || digest === undefined) throw damagedCursor(workName);
  return { number: Number(number), digest: Buffer.from(digest, "hex") };
}
