import type { Database } from "@countersign/idempotency";
import { type Row, decodeText, encodeText } from "@countersign/idempotency/store";
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
import { WorkGate, laneOf, sortableNanoseconds } from "@countersign/idempotency/work/store";
import { Engine } from "./engine.ts";
import { explained, inTransaction } from "./errors.ts";
import { type PostgresStoresOptions, type ResolvedPostgresOptions, resolveOptions } from "./options.ts";
import { PrunedTable } from "./pruning.ts";
import { integerOf, singleRow } from "./queryable.ts";
import { decodeKey, encodeKey } from "./stored-key.ts";
import type { AddCall, ClaimCall, ExtendCall, RetryCall, SettleCall } from "./work-calls.ts";
import {
  claimedOf,
  pageOf,
  pageParameters,
  pageStatement,
  readStatement,
  recordOf,
  summaryOf,
} from "./work-listing.ts";
import { type WorkStatements, workStatements } from "./work-statements.ts";

type TaskFailure = Parameters<WorkStore<never>["fail"]>[1];
type NewestMark = Parameters<WorkStore<never>["advance"]>[1];
type DeadTasks = Parameters<WorkStore<never>["retry"]>[1];

const name = "postgres work store";

type OperatorSteps = "engine" | "summaries" | "read" | "list" | "retry" | "discard" | "pause" | "resume";

/** The table of work as operators use it, without the library that tasks are added by. */
export interface PostgresWork extends Pick<WorkStore<never, "async">, OperatorSteps | "prune"> {
  /** Ends the pruning timer; the pool stays open. A later call throws. */
  close(): void;
}

/** Opens the table of work for operators, such as a command line, by a pool or client alone. Throws an OptionError on a wrong option. */
export function createPostgresWork(options: PostgresStoresOptions): PostgresWork {
  const resolved = resolveOptions(options, "createPostgresWork");
  return new WorkTable(new Engine(resolved), resolved);
}

class WorkTable extends PrunedTable implements PostgresWork {
  protected readonly gate: WorkGate = new WorkGate(name);
  protected readonly sql: WorkStatements;

  constructor(engine: Engine, options: ResolvedPostgresOptions) {
    const sql = workStatements(options);
    super(name, engine, options, sql.removeDone);
    this.sql = sql;
  }

  async summaries(): Promise<readonly QueueSummary[]> {
    this.gate.assertUsable();
    return (await this.run(this.sql.summaries)).map(summaryOf);
  }

  async read(queue: string, id: string): Promise<TaskRecord | undefined> {
    this.gate.assertRead(queue, id);
    const [row] = await this.runPlain(readStatement(this.options.names), queue, encodeKey(id));
    return row === undefined ? undefined : recordOf(row);
  }

  async list(query: TaskQuery): Promise<TaskPage> {
    this.gate.assertList(query);
    const statement = pageStatement(this.options.names, query.state);
    return pageOf(await this.runPlain(statement, ...pageParameters(name, query)), query.limit);
  }

  async retry(queue: string, which: DeadTasks): Promise<number> {
    this.gate.assertRetry(queue, which);
    const dead = "ids" in which ? { ids: which.ids.map(encodeKey) } : { deadSinceMs: which.deadSinceMs };
    return countOf(await this.call<RetryCall>(this.sql.retry, { queue, ...dead }));
  }

  async discard(queue: string, ids: readonly string[], decision: WorkDecision): Promise<number> {
    this.gate.assertDiscard(queue, ids, decision);
    const reason = encodeText(`discarded by ${decision.by}: ${decision.note}`);
    const discarded = await this.run(this.sql.discard, reason, queue, JSON.stringify(ids.map(encodeKey)));
    return discarded.length;
  }

  async pause(queue: string, decision: WorkDecision): Promise<void> {
    this.gate.assertPause(queue, decision);
    const paused = await this.run(this.sql.pause, queue, encodeText(decision.by), encodeText(decision.note));
    if (paused.length === 0) throw new Error(`${name}: ${inTransaction}`);
  }

  async resume(queue: string): Promise<boolean> {
    this.gate.assertResume(queue);
    return (await this.runPlain(this.sql.resume, queue)).length > 0;
  }

  /** Calls a function in a transaction of its own. */
  protected call<Call>(statement: string, call: Omit<Call, "now" | "waitMs">): Promise<readonly Row[]> {
    return this.runPlain(statement, this.callOf({ ...call, waitMs: this.options.lockTimeoutMs }));
  }

  protected callOf(call: object): string {
    return JSON.stringify({
      ...call,
      ...(this.options.now === undefined ? {} : { now: this.options.now() }),
    });
  }
}

/** The table of work beside the transactions of the user's own library. */
export class PostgresWorkStore<Tx> extends WorkTable implements WorkStore<Tx, "async"> {
  readonly mode = "async";
  readonly #database: Database<Tx>;

  constructor(engine: Engine, options: ResolvedPostgresOptions, database: Database<Tx>) {
    super(engine, options);
    this.#database = database;
  }

  async add(tx: Tx, queue: string, tasks: readonly NewTask[]): Promise<readonly TaskAdded[]> {
    this.gate.assertAdd(queue, tasks);
    if (tasks.length === 0) return [];
    const ids = tasks.map(({ id }) => encodeKey(id));
    const added = tasks.map((task, place) => ({
      id: ids[place] ?? "",
      lane: encodeKey(laneOf(task)),
      body: encodeText(task.body),
      delayMs: task.delayMs ?? 0,
    }));
    const call = { queue, tasks: added } satisfies AddCall;
    const { answer } = singleRow(await this.#runIn(tx, this.sql.add, this.callOf(call)));
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- made by our own function
    const known = new Map(Object.entries(JSON.parse(String(answer)) as Readonly<Record<string, string>>));
    return ids.map((id) => {
      const body = known.get(id);
      return body === undefined ? { status: "added" } : { status: "known", body: decodeText(body) };
    });
  }

  async claim(claim: TaskClaim): Promise<readonly ClaimedTask[]> {
    this.gate.assertClaim(claim);
    const { queue, limit, token, leaseMs } = claim;
    const call = { queue, limit, token: encodeText(token), leaseMs };
    const rows = await this.call<ClaimCall>(this.sql.claim, call);
    return rows.map(({ answer }) => claimedOf(answer, queue, token));
  }

  async extend(tasks: readonly OwnedTask[], leaseMs: number): Promise<readonly string[]> {
    this.gate.assertExtend(tasks, leaseMs);
    if (tasks.length === 0) return [];
    const call = { tasks: tasks.map(storedTask), leaseMs };
    const owned = await this.call<ExtendCall>(this.sql.extend, call);
    return owned.map(({ answer }) => decodeKey(String(answer)));
  }

  async finish(tx: Tx, task: OwnedTask): Promise<boolean> {
    this.gate.assertOwnerIn(task);
    const call = {
      tasks: [storedTask(task)],
      goal: "done",
      restMs: this.options.taskRetentionMs,
    } satisfies SettleCall;
    // The worker's own, after the handler has settled.
    return countOf(await this.#send(tx, this.sql.settle, [this.callOf(call)])) > 0;
  }

  async fail(task: OwnedTask, failure: TaskFailure): Promise<boolean> {
    this.gate.assertFail(task, failure);
    const { reason, retryInMs } = failure;
    const failed = await this.call<SettleCall>(this.sql.settle, {
      tasks: [storedTask(task)],
      reason: encodeText(reason),
      ...(retryInMs === undefined ? { goal: "dead" } : { goal: "open", delayMs: retryInMs }),
    });
    return countOf(failed) > 0;
  }

  async giveBack(tasks: readonly OwnedTask[], delayMs: number): Promise<void> {
    this.gate.assertGiveBack(tasks, delayMs);
    if (tasks.length === 0) return;
    const call = { tasks: tasks.map(storedTask), goal: "open", delayMs, isUndone: true } as const;
    await this.call<SettleCall>(this.sql.settle, call);
  }

  async advance(tx: Tx, mark: NewestMark): Promise<boolean> {
    this.gate.assertAdvance(mark);
    const { scope, subject, at } = mark;
    const values = [encodeKey(scope), encodeKey(subject), sortableNanoseconds(at)];
    return (await this.#runIn(tx, this.sql.advance, ...values)).length > 0;
  }

  /** In the transaction of a handler, as a statement of its own (I26). */
  async #runIn(tx: Tx, statement: string, ...values: string[]): Promise<readonly Row[]> {
    const send = (): Promise<readonly Row[]> => this.#send(tx, statement, values);
    return await (this.#database.gateOf(tx)?.send(send, write) ?? send());
  }

  async #send(tx: Tx, statement: string, values: readonly string[]): Promise<readonly Row[]> {
    try {
      return await this.#database.query(tx, statement, values);
    } catch (error) {
      throw explained(name, this.options.names, error);
    }
  }
}

function storedTask({ queue, id, token }: OwnedTask): SettleCall["tasks"][number] {
  return { queue, id: encodeKey(id), token: encodeText(token) };
}

/** What a handler adds, also where it is there already, is what it was to write. */
function write(): "write" {
  return "write";
}

function countOf(rows: readonly Row[]): number {
  return integerOf(singleRow(rows)["answer"]);
}
