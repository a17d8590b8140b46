import { randomBytes } from "node:crypto";
import type { SqlValue } from "@countersign/idempotency";
import type { Row } from "@countersign/idempotency/store";
import type {
  ClaimedTask,
  NewTask,
  OwnedTask,
  TaskAdded,
  TaskClaim,
  WorkStore,
} from "@countersign/idempotency/work";
import { sortableNanoseconds } from "@countersign/idempotency/work/store";
import type { ServerWorkStore } from "../server-stores.ts";
import { notOpen, type StoreStep } from "./engine.ts";
import { errnoOf, outOfRange } from "./errors.ts";
import { type Statement, waitingFor } from "./statement-parts.ts";
import { textOf } from "./task-row.ts";
import { bytesOf, digestOf, hexOf, integerOf, isTrue, singleRow, storedBytes } from "./values.ts";
import { laneDigest, lanesStatements, tasksStatements } from "./work-adding.ts";
import { WorkClaim } from "./work-claim.ts";
import { failuresWith, WorkOperations, workName } from "./work-operations.ts";

type TaskFailure = Parameters<WorkStore<never>["fail"]>[1];
type NewestMark = Parameters<WorkStore<never>["advance"]>[1];

interface OwnedLane {
  readonly id: string;
  readonly lane: Buffer;
  readonly digest: Buffer;
  readonly token: Buffer;
}

/** Tasks on the tables `lanes`, `tasks`, `queues` and `newest`. */
export class WorkTable<Tx> extends WorkOperations<Tx> implements ServerWorkStore<Tx> {
  readonly mode = "async";

  async add(tx: Tx, queue: string, tasks: readonly NewTask[]): Promise<readonly TaskAdded[]> {
    this.tasks.assertAdd(queue, tasks);
    if (tasks.length === 0) return [];
    const moment = { ...this.options, now: this.now() };
    const lanes = tasks.map((task) => laneDigest(queue, task));
    const wanted = { queue, digests: lanes, numbers: tasks.length };
    const step = { store: workName, step: "add" };
    await this.server.assertOpen(tx, step);
    const locked = await this.#send(tx, step, lanesStatements(moment, wanted));
    assertOpen(locked, step);
    const lastOf = new Map(locked.map((row) => [hexOf(row["digest"]), integerOf(row["last_number"])]));
    const numbered = tasks.map((task, index) => {
      const lane = lanes[index] ?? Buffer.alloc(0);
      return { ...task, lane, number: (lastOf.get(hexOf(lane)) ?? 0) - tasks.length + index + 1 };
    });
    const mark = randomBytes(16);
    const rows = await this.#send(tx, step, tasksStatements(moment, { queue, tasks: numbered, mark }));
    const found = new Map(rows.map((row) => [hexOf(row["digest"]), row]));
    return tasks.map(({ id }) => addedBy(found.get(hexOf(digestOf(queue, id)))));
  }

  async claim(claim: TaskClaim): Promise<readonly ClaimedTask[]> {
    this.tasks.assertClaim(claim);
    return new WorkClaim(this.server, this.options, { claim, now: this.now() }).take();
  }

  async extend(tasks: readonly OwnedTask[], leaseMs: number): Promise<readonly string[]> {
    this.tasks.assertExtend(tasks, leaseMs);
    const owned = await this.#owned(tasks);
    if (owned.length === 0) return [];
    await this.server.run(workName, async (tx) => {
      const { lockLeases, extend } = this.statements();
      const wanted = [
        ...owned.map(({ digest }) => digest),
        ...owned.flatMap(({ token, digest }) => [token, digest]),
      ];
      const locked = await this.query(tx, lockLeases(owned.length), wanted);
      if (locked.length === 0) return;
      const digests = locked.map((row) => storedBytes(row["digest"]));
      await this.query(tx, extend(digests.length), [leaseMs, ...digests]);
    });
    return owned.map(({ id }) => id);
  }

  async finish(tx: Tx, task: OwnedTask): Promise<boolean> {
    this.tasks.assertOwnerIn(task);
    const { lockOwned, finish } = this.statements();
    // The worker's own, after the handler has settled.
    const step = { store: workName, step: "finish" };
    await this.server.assertOpen(tx, step);
    const rows = await this.server.query(tx, workName, lockOwned(""), lockValues(task));
    if (rows.length === 0) return false;
    assertOpen(rows, step);
    await this.server.query(tx, workName, finish, [digestOf(task.queue, task.id)]);
    return true;
  }

  async fail(task: OwnedTask, { reason, retryInMs }: TaskFailure): Promise<boolean> {
    this.tasks.assertFail(task, { reason, retryInMs });
    const { lockOwned, kill, postpone } = this.statements();
    const digest = digestOf(task.queue, task.id);
    return this.server.run(workName, async (tx) => {
      const start = waitingFor(this.options.lockTimeoutMs);
      const [row] = await this.query(tx, lockOwned(start), lockValues(task));
      if (row === undefined) return false;
      const failures = failuresWith(row, reason);
      if (retryInMs === undefined) await this.query(tx, kill, [failures, digest]);
      else await this.query(tx, postpone, [failures, retryInMs, digest]);
      return true;
    });
  }

  async giveBack(tasks: readonly OwnedTask[], delayMs: number): Promise<void> {
    this.tasks.assertGiveBack(tasks, delayMs);
    const owned = await this.#owned(tasks);
    if (owned.length === 0) return;
    await this.server.change(workName, this.statements().giveBack(owned.length), [
      delayMs,
      ...identities(owned),
    ]);
  }

  async advance(tx: Tx, mark: NewestMark): Promise<boolean> {
    this.tasks.assertAdvance(mark);
    const { scope, subject, at } = mark;
    const row = {
      digest: digestOf(scope, subject),
      scope: bytesOf(scope),
      subject: bytesOf(subject),
      time: sortableNanoseconds(at),
    };
    const step = { store: workName, step: "advance" };
    await this.server.assertOpen(tx, step);
    const rows = await this.#send(tx, step, this.statements().advance(row));
    return isTrue(singleRow(rows)["is_newest"]);
  }

  /** Those that their tokens own, with their lanes. */
  async #owned(tasks: readonly OwnedTask[]): Promise<readonly OwnedLane[]> {
    if (tasks.length === 0) return [];
    const named = tasks.map((task) => ({ ...task, digest: digestOf(task.queue, task.id) }));
    const rows = await this.alone(
      this.statements().owned(tasks.length),
      named.map(({ digest }) => digest),
    );
    const found = new Map(rows.map((row) => [hexOf(row["task"]), row]));
    return named.flatMap(({ id, digest, token }) => {
      const row = found.get(hexOf(digest));
      const isOwner = row !== undefined && storedBytes(row["token"]).equals(bytesOf(token));
      return isOwner ? [{ id, lane: storedBytes(row["lane"]), digest, token: bytesOf(token) }] : [];
    });
  }

  /** In the transaction of a handler, as a statement of its own (I26). */
  #send(tx: Tx, step: StoreStep, statements: readonly Statement[]): Promise<readonly Row[]> {
    const send = async (): Promise<readonly Row[]> => {
      try {
        return await this.server.send(tx, workName, statements);
      } catch (error) {
        throw errnoOf(error) === outOfRange ? notOpen(step) : error;
      }
    };
    return this.server.database.gateOf(tx)?.send(send, () => "write") ?? send();
  }
}

function assertOpen(rows: readonly Row[], step: StoreStep): void {
  if (rows.every((row) => isTrue(row["is_open"]))) return;
  throw notOpen(step);
}

function addedBy(row: Row | undefined): TaskAdded {
  if (row === undefined) throw new Error(`${workName}: the server answered without one of the tasks`);
  return isTrue(row["is_new"]) ? { status: "added" } : { status: "known", body: textOf(row["body"]) };
}

function lockValues({ queue, id, token }: OwnedTask): SqlValue[] {
  const digest = digestOf(queue, id);
  return [digest, digest, digest, bytesOf(token), digest];
}

/** Lanes, then tokens with their tasks. */
function identities(owned: readonly OwnedLane[]): Buffer[] {
  return [...owned.map(({ lane }) => lane), ...owned.flatMap(({ token, digest }) => [token, digest])];
}
