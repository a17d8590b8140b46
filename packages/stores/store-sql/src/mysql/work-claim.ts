import type { SqlValue } from "@countersign/idempotency";
import { leaseExpired, type Row } from "@countersign/idempotency/store";
import type { ClaimedTask, TaskClaim } from "@countersign/idempotency/work";
import type { Engine } from "./engine.ts";
import type { ResolvedMysqlOptions } from "./options.ts";
import { microseconds, waitingFor } from "./statement-parts.ts";
import { entityOf, textOf } from "./task-row.ts";
import { bytesOf, hexOf, integerOf, isTrue, storedBytes } from "./values.ts";
import { failuresWith, workName } from "./work-operations.ts";
import { places } from "./work-statements.ts";

interface Candidate {
  readonly lane: Buffer;
  /** Whether it has a task to run; the others are to be removed, or looked at later. */
  readonly isReady: boolean;
  readonly dueUs: number;
}

/**
 * One claim. Finds due lanes without a lock, then locks them by their keys: at REPEATABLE READ, a lock on the index of due times would stop
 * whoever adds.
 */
export class WorkClaim<Tx> {
  readonly #server: Engine<Tx>;
  readonly #options: ResolvedMysqlOptions<Tx>;
  readonly #now: string;
  readonly #claim: TaskClaim;

  constructor(
    server: Engine<Tx>,
    options: ResolvedMysqlOptions<Tx>,
    { claim, now }: { readonly claim: TaskClaim; readonly now: string },
  ) {
    this.#server = server;
    this.#options = options;
    this.#now = now;
    this.#claim = claim;
  }

  async take(): Promise<readonly ClaimedTask[]> {
    // More than asked for: other workers want the same.
    const most = this.#claim.limit * 4 + 32;
    let last: Candidate | undefined;
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- goes on behind what was found
      const found = await this.#find(last, most);
      if (found.length === 0) return [];
      // oxlint-disable-next-line no-await-in-loop -- as above
      const tasks = await this.#server.run(workName, (tx) => this.#takeOf(tx, found));
      if (tasks.length > 0 || found.length < most) return tasks;
      last = found.at(-1);
    }
  }

  /** Due lanes after the last one, longest due first. */
  async #find(last: Candidate | undefined, most: number): Promise<readonly Candidate[]> {
    const { lanes, tasks, queues } = this.#options.names;
    const { queue } = this.#claim;
    const text = `SELECT lane.digest AS lane, lane.due_us, (SELECT head.due_us FROM ${tasks} AS head FORCE INDEX (heads)
  WHERE head.lane = lane.digest AND head.state = 'open' ORDER BY head.number LIMIT 1) <= ${this.#now}
  AND COALESCE((SELECT leased_us FROM ${tasks} WHERE digest = lane.task), 0) <= ${this.#now} AS is_ready
FROM ${lanes} AS lane FORCE INDEX (due) WHERE lane.queue = ? AND lane.due_us BETWEEN ? AND ${this.#now}
  AND (lane.due_us > ? OR lane.digest > ?) AND NOT EXISTS (SELECT 1 FROM ${queues} WHERE queue = ?)
ORDER BY lane.due_us, lane.digest LIMIT ${most}`;
    const dueUs = last?.dueUs ?? 0;
    const values = [queue, dueUs, dueUs, last?.lane ?? Buffer.alloc(0), queue];
    return (await this.#server.alone(workName, text, values)).map((row) => ({
      lane: storedBytes(row["lane"]),
      isReady: isTrue(row["is_ready"]),
      dueUs: integerOf(row["due_us"]),
    }));
  }

  async #takeOf(tx: Tx, found: readonly Candidate[]): Promise<readonly ClaimedTask[]> {
    const { limit } = this.#claim;
    const ready = found.filter(({ isReady }) => isReady);
    const idle = found.filter(({ isReady }) => !isReady);
    const oldest = ready.slice(0, limit);
    const locked = await this.#lock(tx, [...oldest, ...idle]);
    const missing = limit - oldest.filter(({ lane }) => locked.has(hexOf(lane))).length;
    const more = await this.#lock(tx, missing > 0 ? ready.slice(limit) : [], missing);
    const lanes = found
      .map(({ lane }) => lane)
      .filter((lane) => locked.has(hexOf(lane)) || more.has(hexOf(lane)));
    if (lanes.length === 0) return [];
    return this.#takeHeads(tx, lanes);
  }

  async #takeHeads(tx: Tx, lanes: readonly Buffer[]): Promise<readonly ClaimedTask[]> {
    const byLane = new Map((await this.#heads(tx, lanes)).map((row) => [hexOf(row["lane"]), row]));
    const found = lanes.map((lane) => byLane.get(hexOf(lane))).filter((row) => row !== undefined);
    const rows = await this.#withoutLeased(tx, found);
    const due = rows.filter((row) => isTrue(row["is_due"])).slice(0, this.#claim.limit);
    const empty = rows.filter((row) => row["head"] === null);
    const later = rows.filter((row) => row["head"] !== null && !isTrue(row["is_due"]));
    await this.#keepLapses(tx, due);
    await this.#remove(tx, empty);
    await this.#move(tx, later, "lane.token = NULL, lane.task = NULL, lane.due_us = head.due_us", []);
    const { queue, token, leaseMs } = this.#claim;
    const until = `${this.#now} + ${microseconds("?")}`;
    const owned = `lane.token = ?, lane.task = head.digest, lane.due_us = ${until},
  head.attempts = head.attempts + 1, head.token = ?, head.leased_us = ${until}`;
    await this.#move(tx, due, owned, [bytesOf(token), leaseMs, bytesOf(token), leaseMs]);
    return due.map((row) => ({
      queue,
      token,
      id: textOf(row["name"]),
      entity: entityOf(row),
      body: textOf(row["body"]),
      attempt: integerOf(row["attempts"]) + 1,
      addedAtMs: integerOf(row["added_ms"]),
    }));
  }

  /** Those of the lanes that are due still and that nobody holds; hexadecimal. */
  async #lock(tx: Tx, lanes: readonly Candidate[], most = lanes.length): Promise<ReadonlySet<string>> {
    if (lanes.length === 0) return new Set();
    const text = `${this.#bound}SELECT digest FROM ${this.#options.names.lanes} FORCE INDEX (PRIMARY)
WHERE digest IN (${places(lanes.length)}) AND due_us <= ${this.#now} LIMIT ${most} FOR UPDATE SKIP LOCKED`;
    const rows = await this.#query(
      tx,
      text,
      lanes.map(({ lane }) => lane),
    );
    return new Set(rows.map((row) => hexOf(row["digest"])));
  }

  /** The oldest open task of each lane. The transaction's first read without a lock: of a snapshot that is newer than the locks. */
  async #heads(tx: Tx, lanes: readonly Buffer[]): Promise<readonly Row[]> {
    const { names } = this.#options;
    const text = `SELECT lane.digest AS lane, lane.token, lane.task, head.digest AS head, head.name, head.entity, head.body,
  head.attempts, head.added_us DIV 1000 AS added_ms, head.due_us <= ${this.#now} AS is_due,
  owned.leased_us, owned.leased_us > ${this.#now} AS is_leased
FROM ${names.lanes} AS lane FORCE INDEX (PRIMARY) LEFT JOIN ${names.tasks} AS owned ON owned.digest = lane.task
LEFT JOIN ${names.tasks} AS head ON head.digest = (
  SELECT first.digest FROM ${names.tasks} AS first FORCE INDEX (heads)
  WHERE first.lane = lane.digest AND first.state = 'open' ORDER BY first.number LIMIT 1)
WHERE lane.digest IN (${places(lanes.length)})`;
    return this.#query(tx, text, lanes);
  }

  /** Leaves out lanes whose owner has renewed its lease, in the row of its task: they are looked at when that ends. */
  async #withoutLeased(tx: Tx, rows: readonly Row[]): Promise<readonly Row[]> {
    const { lanes, tasks } = this.#options.names;
    const move = `${this.#bound}UPDATE ${lanes} FORCE INDEX (PRIMARY) SET due_us = ? WHERE digest = ?`;
    for (const { lane, leased_us: until } of rows.filter((row) => isTrue(row["is_leased"]))) {
      // oxlint-disable-next-line no-await-in-loop -- one statement after the other
      await this.#query(tx, move, [integerOf(until), storedBytes(lane)]);
    }
    const silent = rows.filter((row) => row["leased_us"] !== null && !isTrue(row["is_leased"]));
    if (silent.length === 0) return rows.filter((row) => !isTrue(row["is_leased"]));
    // An owner may be renewing one of them meanwhile.
    const lock = `${this.#bound}SELECT digest FROM ${tasks} FORCE INDEX (PRIMARY)
WHERE digest IN (${places(silent.length)}) AND leased_us <= ${this.#now} FOR UPDATE SKIP LOCKED`;
    const ended = await this.#query(
      tx,
      lock,
      silent.map(({ task }) => storedBytes(task)),
    );
    const isEnded = new Set(ended.map(({ digest }) => hexOf(digest)));
    return rows.filter((row) => row["leased_us"] === null || isEnded.has(hexOf(row["task"])));
  }

  /** A lane that still has a token is one whose owner fell silent. */
  async #keepLapses(tx: Tx, due: readonly Row[]): Promise<void> {
    const silent = due.flatMap(({ token, task }) => (token === null ? [] : [storedBytes(task)]));
    if (silent.length === 0) return;
    const { tasks } = this.#options.names;
    const find = `SELECT digest, attempts, failures, ${this.#now} DIV 1000 AS now_ms FROM ${tasks} WHERE digest IN (${places(silent.length)})`;
    for (const row of await this.#query(tx, find, silent)) {
      const keep = `${this.#bound}UPDATE ${tasks} SET failures = ?, token = NULL, leased_us = NULL WHERE digest = ?`;
      // oxlint-disable-next-line no-await-in-loop -- one statement after the other
      await this.#query(tx, keep, [failuresWith(row, leaseExpired), storedBytes(row["digest"])]);
    }
  }

  async #remove(tx: Tx, empty: readonly Row[]): Promise<void> {
    if (empty.length === 0) return;
    const { lanes } = this.#options.names;
    const text = `${this.#bound}DELETE ${lanes} FROM ${lanes} FORCE INDEX (PRIMARY) WHERE digest IN (${places(empty.length)})`;
    await this.#query(
      tx,
      text,
      empty.map((row) => storedBytes(row["lane"])),
    );
  }

  /** Changes lanes and their heads. */
  async #move(tx: Tx, rows: readonly Row[], set: string, values: readonly SqlValue[]): Promise<void> {
    if (rows.length === 0) return;
    const { lanes, tasks } = this.#options.names;
    const text = `${this.#bound}UPDATE ${tasks} AS head FORCE INDEX (PRIMARY)
STRAIGHT_JOIN ${lanes} AS lane ON lane.digest = head.lane SET ${set} WHERE head.digest IN (${places(rows.length)})`;
    await this.#query(tx, text, [...values, ...rows.map((row) => storedBytes(row["head"]))]);
  }

  get #bound(): string {
    return waitingFor(this.#options.lockTimeoutMs);
  }

  #query(tx: Tx, text: string, values: readonly SqlValue[]): Promise<readonly Row[]> {
    return this.#server.database.query(tx, text, values);
  }
}
