import { randomInt } from "node:crypto";
import { encodeText } from "@countersign/idempotency/store";
import type { NewTask, OwnedTask, TaskRecord, WorkDecision } from "@countersign/idempotency/work";
import {
  laneOf,
  sortableNanoseconds,
  type DeadTasks,
  type NewestMark,
  type TaskChange,
} from "@countersign/idempotency/work/store";
import type { Chain, Found, Part, TaskOfLane } from "./chain.ts";
import type { Change, Input, InputType, TaskDialect, TaskTables, Upsert } from "./dialect.ts";
import { digestOf } from "./digests.ts";
import { joined, raw, fragment, type Sql } from "../sql/sql.ts";
import type { Moment } from "./task-engine.ts";

/** A task to add, with the digests of its row and of its lane. */
export interface AddedTask {
  readonly task: NewTask;
  readonly digest: string;
  readonly lane: string;
}

/** A lane as it was read: another version is another lane. */
export interface LaneVersion {
  readonly lane: string;
  readonly version: number;
}

/** A lane with its oldest open task, which a claim takes. */
export interface LaneHead extends LaneVersion {
  readonly head: string;
}

/** The attempt that a token owns, with what becomes of the task. */
export interface EndedAttempt extends TaskOfLane {
  readonly token: string;
  readonly change: TaskChange;
}

/** A lapsed attempt, with the end of its lease as it was read. */
export interface LapsedAttempt extends LaneVersion {
  readonly task: string;
  readonly leasedUntilUs: number;
  readonly change: TaskChange;
}

export interface DeadTask extends TaskOfLane {
  /** Of its lane. */
  readonly name: string;
  readonly number: number;
}

export interface DiscardedTask {
  readonly task: string;
  /** As it was read: one that has died since is another failure. */
  readonly endedUs: number;
  readonly change: TaskChange;
}

/** Where a page or a search goes on: behind this row. */
export interface Position {
  readonly at: number;
  readonly digest: string;
}

export interface StatementParts extends Moment {
  readonly dialect: TaskDialect;
  readonly names: TaskTables;
  readonly taskRetentionMs: number;
}

const states = ["open", "dead", "done"] as const satisfies readonly TaskRecord["state"][];

/**
 * The statements of tasks at one moment. Rows are locked by primary keys alone, in their order: first lanes, then tasks. A locked lane is
 * waited for by who ends an attempt, who adds, and who retries; a claim leaves it to others.
 */
export class TaskStatements {
  readonly #parts: StatementParts;
  readonly #lane: Sql;
  readonly #task: Sql;

  constructor(parts: StatementParts) {
    this.#parts = parts;
    const { lanes, tasks } = parts.names;
    const byKey = parts.dialect.byIndex("primary");
    this.#lane = fragment`FROM ${raw(lanes)} AS lane ${byKey}`;
    this.#task = fragment`FROM ${raw(tasks)} AS task ${byKey}`;
  }

  /** Adds the tasks whose ids are unknown, and gives their digests. `mark` is of this call alone, in hexadecimal. */
  add(queue: string, tasks: readonly AddedTask[], mark: string): Chain {
    const { dialect, names, now } = this.#parts;
    const last = tasks.length - 1;
    const numbered = tasks.map((each, index) => ({ ...each, behind: last - index }));
    const lanes = new Map(tasks.map(({ task, lane }) => [lane, { name: laneOf(task), number: 0 }]));
    return [
      this.#lanes(queue, lanes, tasks.length),
      {
        find: (found) =>
          dialect.addUnknown({
            into: names.tasks,
            inputs: taskInputs,
            rows: inOrder(numbered).map(({ task, digest, lane, behind }) => ({
              digest,
              lane,
              behind,
              id: encodeText(task.id),
              entity: task.entity === undefined ? undefined : encodeText(task.entity),
              body: encodeText(task.body),
              delay: task.delayMs ?? 0,
            })),
            columns: (input) => ({
              digest: input("digest"),
              queue: dialect.text(queue),
              id: input("id"),
              entity: input("entity"),
              lane: input("lane"),
              state: raw("'open'"),
              body: input("body"),
              attempts: raw("0"),
              failures: raw("'[]'"),
              added_us: now,
              due_us: this.#after(input("delay")),
              ...(dialect.hasReturning ? {} : { mark: dialect.digest(mark) }),
            }),
            lanes: found,
            mark: dialect.digest(mark),
          }),
      },
    ];
  }

  /** Gives `body` of those that are there, and keeps them there. */
  known(tasks: readonly AddedTask[]): Chain {
    const { dialect } = this.#parts;
    const wanted = tasks.map(({ digest }) => digest);
    return [
      {
        find: () => [
          fragment`SELECT ${dialect.found(raw("task.digest"))}, task.body ${this.#task}
WHERE ${this.#guarded("task.digest", wanted)} ${dialect.forUpdate(raw("task.digest"))}`,
        ],
      },
    ];
  }

  /** Due lanes behind a position, longest due first, with the owned task of each, and its oldest open one. None of a paused queue. */
  due(queue: string, most: number, { at, digest }: Position): Sql {
    const { dialect, names, now, guard } = this.#parts;
    const { lanes, tasks, queues } = names;
    const hex = (column: string): Sql => dialect.hex(raw(column));
    const last = dialect.integer(at);
    return fragment`SELECT ${hex("lane.digest")} AS lane, lane.version, lane.due_us, ${hex("lane.task")} AS task,
  owned.leased_us, owned.attempts AS owned_attempts, owned.failures AS owned_failures,
  ${hex("head.digest")} AS head, head.due_us AS head_due_us, head.number, head.attempts, ${now} AS now_us
FROM (SELECT lane.digest, lane.version, lane.due_us, lane.task FROM ${raw(lanes)} AS lane ${dialect.byIndex("due")}
  WHERE ${guard} AND lane.queue = ${dialect.text(queue)} AND lane.due_us BETWEEN ${last} AND ${now}
    AND (lane.due_us > ${last} OR lane.digest > ${dialect.digest(digest)})
    AND NOT EXISTS (SELECT 1 FROM ${raw(queues)} AS paused WHERE paused.digest = ${dialect.digest(digestOf(queue))})
  ORDER BY lane.due_us, lane.digest LIMIT ${raw(String(most))}) AS lane
LEFT JOIN ${raw(tasks)} AS owned ON owned.digest = lane.task
LEFT JOIN ${raw(tasks)} AS head ON head.digest = (SELECT oldest.digest FROM ${raw(tasks)} AS oldest ${dialect.byIndex("heads")}
  WHERE oldest.lane = lane.digest AND oldest.state = 'open' ORDER BY oldest.number LIMIT 1)
ORDER BY lane.due_us, lane.digest`;
  }

  /** Takes the oldest tasks of lanes that are as they were read, and that nobody has locked. Gives `lane` and what a worker is told of each. */
  take(heads: readonly LaneHead[], token: string, leaseMs: number): Chain {
    const { dialect, names } = this.#parts;
    const tasks = heads.map(({ lane, head }) => ({ lane, task: head }));
    const until = this.#after(dialect.integer(leaseMs));
    const owned = { token: dialect.text(encodeText(token)) };
    return [
      this.#asRead(heads),
      {
        find: (found) => [
          fragment`SELECT ${dialect.found(raw("task.lane"))}, task.id, task.entity, task.body, task.added_us ${this.#task}
WHERE ${found.tasksOf(tasks)} AND task.state = 'open' ${dialect.skipLocked}`,
        ],
      },
      {
        change: (found) =>
          dialect.changeBoth(
            {
              of: names.lanes,
              as: "lane",
              set: {
                ...owned,
                task: this.#each("lane.digest", "digest", tasks, ({ lane, task }) => [lane, task]),
                due_us: until,
                version: nextVersion,
              },
              where: found.has(raw("lane.digest")),
            },
            {
              of: names.tasks,
              as: "task",
              set: { ...owned, attempts: raw("task.attempts + 1"), leased_us: until },
              where: found.tasksOf(tasks),
            },
          ),
      },
    ];
  }

  /** Removes lanes that are as they were read, and that nobody has locked. */
  remove(lanes: readonly LaneVersion[]): Chain {
    const { names } = this.#parts;
    return [
      this.#asRead(lanes),
      { change: (found) => [fragment`DELETE FROM ${raw(names.lanes)} WHERE ${found.has(raw("digest"))}`] },
    ];
  }

  /** Lets claims look at lanes later, if these are as they were read, and nobody has locked them. */
  postpone(lanes: readonly (LaneVersion & { readonly dueUs: number })[]): Chain {
    const { dialect, names } = this.#parts;
    const set = {
      due_us: this.#each("lane.digest", "integer", lanes, ({ lane, dueUs }) => [lane, dueUs]),
      version: nextVersion,
    };
    return [
      this.#asRead(lanes),
      {
        change: (found) => [
          dialect.change({ as: "lane", of: names.lanes, set, where: found.has(raw("lane.digest")) }),
        ],
      },
    ];
  }

  /** Ends attempts whose owners have fallen silent, if lane and lease are as they were read. Gives their lanes. */
  lapse(lapsed: readonly LapsedAttempt[]): Chain {
    const { dialect } = this.#parts;
    const leases = this.#each("task.digest", "integer", lapsed, ({ task, leasedUntilUs }) => [
      task,
      leasedUntilUs,
    ]);
    return [
      this.#asRead(lapsed),
      {
        // An owner may be renewing one of them meanwhile.
        find: (found) => [
          fragment`SELECT ${dialect.found(raw("task.lane"))} ${this.#task}
WHERE ${found.tasksOf(lapsed)} AND task.leased_us = ${leases} ${dialect.skipLocked}`,
        ],
      },
      this.#letGo(lapsed),
    ];
  }

  /** What the ends of attempts need to know of their tasks. */
  owned(tasks: readonly OwnedTask[]): Sql {
    const { dialect, now } = this.#parts;
    const wanted = tasks.map(({ queue, id }) => digestOf(queue, id));
    return fragment`SELECT ${dialect.hex(raw("task.digest"))} AS task, ${dialect.hex(raw("task.lane"))} AS lane,
  task.token, task.attempts, task.failures, ${now} AS now_us ${this.#task} WHERE ${this.#guarded("task.digest", wanted)}`;
  }

  /** Renews leases, in the rows of the tasks alone. Gives their digests, without those that are locked: these are being ended, and not waited for. */
  extend(tasks: readonly OwnedTask[], leaseMs: number): Chain {
    const { dialect, names } = this.#parts;
    const named = tasks.map((task) => ({ ...task, digest: digestOf(task.queue, task.id) }));
    const digests = named.map(({ digest }) => digest);
    const tokens = this.#each("task.digest", "text", named, ({ digest, token }) => [
      digest,
      encodeText(token),
    ]);
    const set = { leased_us: this.#after(dialect.integer(leaseMs)) };
    return [
      {
        find: () => [
          fragment`SELECT ${dialect.found(raw("task.digest"))} ${this.#task}
WHERE ${this.#guarded("task.digest", digests)} AND task.token = ${tokens} ${dialect.skipLocked}`,
        ],
      },
      {
        change: (found) => [
          dialect.change({ as: "task", of: names.tasks, set, where: found.has(raw("task.digest")) }),
        ],
      },
    ];
  }

  /** Ends attempts that their tokens own still. Gives their lanes. */
  end(attempts: readonly EndedAttempt[]): Chain {
    const { dialect } = this.#parts;
    const lanes = attempts.map(({ lane }) => lane);
    const tokens = this.#each("lane.digest", "text", attempts, ({ lane, token }) => [
      lane,
      encodeText(token),
    ]);
    const tasks = this.#each("lane.digest", "digest", attempts, ({ lane, task }) => [lane, task]);
    return [
      {
        find: () => [
          fragment`SELECT ${dialect.found(raw("lane.digest"))} ${this.#lane}
WHERE ${this.#guarded("lane.digest", lanes)} AND lane.token = ${tokens} AND lane.task = ${tasks} ${dialect.forUpdate(raw("lane.digest"))}`,
        ],
      },
      this.#letGo(attempts),
    ];
  }

  /** Ends one attempt as done, if its token owns it still. The lane is read without a lock: an adder locks tasks of lanes that it holds. */
  finish({ queue, id, token }: OwnedTask, change: TaskChange): Chain {
    const { dialect, names, guard } = this.#parts;
    const task = digestOf(queue, id);
    const digest = dialect.digest(task);
    return [
      {
        find: () => [
          fragment`SELECT ${dialect.found(raw("lane.digest"))} ${this.#lane}
WHERE ${guard} AND lane.digest = (SELECT task.lane FROM ${raw(names.tasks)} AS task WHERE task.digest = ${digest})
  AND lane.token = ${dialect.text(encodeText(token))} AND lane.task = ${digest} ${dialect.forUpdate(raw("lane.digest"))}`,
        ],
      },
      {
        change: (found) =>
          dialect.changeBoth(this.#free(found), {
            of: names.tasks,
            as: "task",
            set: this.#ended([{ task, change }]),
            where: fragment`task.digest = ${digest} AND ${found.has(raw("task.lane"))}`,
          }),
      },
    ];
  }

  /** Writes the time unless a newer one is there. Gives `newest_at`. */
  advance({ scope, subject, at }: NewestMark): Chain {
    const { dialect, names, guard } = this.#parts;
    const time = dialect.text(sortableNanoseconds(at));
    const [stored, proposed] = [dialect.stored("newest_at"), dialect.proposed("newest_at", time)];
    const values = {
      scope: dialect.text(encodeText(scope)),
      subject: dialect.text(encodeText(subject)),
      newest_at: time,
    };
    return [
      {
        find: () =>
          dialect.upsert({
            into: names.newest,
            inputs: { digest: "digest" },
            rows: [{ digest: digestOf(scope, subject) }],
            columns: (input) => ({ digest: input("digest"), ...values }),
            guard,
            set: { newest_at: fragment`${raw(dialect.greatest)}(${stored}, ${proposed})` },
            giving: "newest_at",
          }),
      },
    ];
  }

  /** Counts by queue and fact: each state, those that run, and in microseconds the age of the oldest open one. */
  get counts(): Sql {
    const { dialect, names, now, guard } = this.#parts;
    const [lanes, tasks] = [raw(names.lanes), raw(names.tasks)];
    return fragment`SELECT queue, state AS fact, COUNT(*) AS value FROM ${tasks} WHERE ${guard} GROUP BY queue, state
UNION ALL SELECT lane.queue, 'running', COUNT(*) FROM ${lanes} AS lane JOIN ${tasks} AS task ON task.digest = lane.task
  WHERE task.leased_us > ${now} GROUP BY lane.queue
UNION ALL SELECT heads.queue, 'oldest', ${now} - heads.added_us FROM (SELECT known.queue, (
    SELECT task.added_us FROM ${tasks} AS task ${dialect.byIndex("states")}
    WHERE task.queue = known.queue AND task.state = 'open' ORDER BY task.number LIMIT 1) AS added_us
  FROM (SELECT DISTINCT queue FROM ${lanes}) AS known) AS heads WHERE heads.added_us IS NOT NULL`;
  }

  get pauses(): Sql {
    const { names, guard } = this.#parts;
    return fragment`SELECT queue, paused_us, paused_by, note FROM ${raw(names.queues)} WHERE ${guard}`;
  }

  read(queue: string, id: string): Sql {
    return fragment`SELECT ${taskColumns} ${this.#task} WHERE ${this.#guarded("task.digest", [digestOf(queue, id)])}`;
  }

  /** Tasks behind a position in the order of adding: of one state, or the first of each state, merged. */
  page(queue: string, state: TaskRecord["state"] | undefined, most: number, { at, digest }: Position): Sql {
    const { dialect, names, guard } = this.#parts;
    const [number, limit] = [dialect.integer(at), raw(String(most))];
    const pageOf = (
      of: string,
    ): Sql => fragment`SELECT ${dialect.hex(raw("task.digest"))} AS hex, task.number, ${taskColumns}
FROM ${raw(names.tasks)} AS task ${dialect.byIndex("states")}
WHERE ${guard} AND task.queue = ${dialect.text(queue)} AND task.state = ${raw(`'${of}'`)}
  AND task.number >= ${number} AND (task.number > ${number} OR task.digest > ${dialect.digest(digest)})
ORDER BY task.number, task.digest LIMIT ${limit}`;
    if (state !== undefined) return pageOf(state);
    const pages = states.map((of) => fragment`SELECT * FROM (${pageOf(of)}) AS ${raw(`${of}_tasks`)}`);
    return fragment`${joined(pages, "\nUNION ALL ")}\nORDER BY number, hex LIMIT ${limit}`;
  }

  /** Gives what {@link TaskStatements.retry} and {@link TaskStatements.discard} need of dead tasks. */
  dead(queue: string, which: DeadTasks): Sql {
    const { dialect, names, now, guard } = this.#parts;
    const columns = fragment`${dialect.hex(raw("task.digest"))} AS task, ${dialect.hex(raw("task.lane"))} AS lane, task.id, task.entity,
  task.number, task.attempts, task.failures, task.ended_us, ${now} AS now_us`;
    if ("ids" in which) {
      const wanted = which.ids.map((id) => digestOf(queue, id));
      return fragment`SELECT ${columns} ${this.#task} WHERE ${this.#guarded("task.digest", wanted)} AND task.state = 'dead'`;
    }
    return fragment`SELECT ${columns} FROM ${raw(names.tasks)} AS task ${dialect.byIndex("states")}
WHERE ${guard} AND task.queue = ${dialect.text(queue)} AND task.state = 'dead' AND task.ended_us >= ${dialect.integer(which.deadSinceMs)} * 1000`;
  }

  /** Opens tasks that are dead still. Gives their digests. */
  retry(queue: string, tasks: readonly DeadTask[]): Chain {
    const { dialect, names, now } = this.#parts;
    const lanes = new Map<string, LaneNumber>();
    for (const { lane, name, number } of tasks) {
      const highest = Math.max(number, lanes.get(lane)?.number ?? 0);
      lanes.set(lane, { name, number: highest });
    }
    const set = { state: raw("'open'"), attempts: raw("0"), due_us: now, ended_us: raw("NULL") };
    return [
      // The first of a lane again: a lane that waits for a later task need not.
      this.#lanes(queue, lanes, 0, true),
      {
        find: (found) => [
          fragment`SELECT ${dialect.found(raw("task.digest"))} ${this.#task}
WHERE ${found.tasksOf(tasks)} AND task.state = 'dead' ${dialect.forUpdate(raw("task.digest"))}`,
        ],
      },
      {
        change: (found) => [
          dialect.change({ as: "task", of: names.tasks, set, where: found.has(raw("task.digest")) }),
        ],
      },
    ];
  }

  /** Ends dead tasks that are as they were read. Gives their digests. */
  discard(tasks: readonly DiscardedTask[]): Chain {
    const { dialect, names } = this.#parts;
    const ends = this.#each("task.digest", "integer", tasks, ({ task, endedUs }) => [task, endedUs]);
    const digests = tasks.map(({ task }) => task);
    return [
      {
        find: () => [
          fragment`SELECT ${dialect.found(raw("task.digest"))} ${this.#task}
WHERE ${this.#guarded("task.digest", digests)} AND task.state = 'dead' AND task.ended_us = ${ends} ${dialect.forUpdate(raw("task.digest"))}`,
        ],
      },
      {
        change: (found) => [
          dialect.change({
            as: "task",
            of: names.tasks,
            set: this.#changed(tasks),
            where: found.has(raw("task.digest")),
          }),
        ],
      },
    ];
  }

  /** Pauses a queue; the newer decision counts. */
  pause(queue: string, { by, note }: WorkDecision): Chain {
    const { dialect, names, now, guard } = this.#parts;
    const told = {
      paused_us: now,
      paused_by: dialect.text(encodeText(by)),
      note: dialect.text(encodeText(note)),
    };
    const set = Object.fromEntries(
      Object.entries(told).map(([column, value]) => [column, dialect.proposed(column, value)]),
    );
    const upsert: Upsert = {
      into: names.queues,
      inputs: { digest: "digest" },
      rows: [{ digest: digestOf(queue) }],
      columns: (input) => ({ digest: input("digest"), queue: dialect.text(queue), ...told }),
      guard,
      set,
      giving: "queue",
    };
    return [{ find: () => dialect.upsert(upsert) }];
  }

  /** Lets claims take tasks of a queue. Gives a row if it was paused. */
  resume(queue: string): Chain {
    const { dialect, names } = this.#parts;
    const digests = [digestOf(queue)];
    return [
      {
        find: () => [
          fragment`SELECT ${dialect.found(raw("paused.digest"))} FROM ${raw(names.queues)} AS paused
WHERE ${this.#guarded("paused.digest", digests)} ${dialect.forUpdate(raw("paused.digest"))}`,
        ],
      },
      { change: (found) => [fragment`DELETE FROM ${raw(names.queues)} WHERE ${found.has(raw("digest"))}`] },
    ];
  }

  /** Locks lanes, and makes those that are missing. Takes `numbers` above the last one of each, which is above `number` then. */
  #lanes(queue: string, lanes: ReadonlyMap<string, LaneNumber>, numbers: number, isDue = false): Part {
    const { dialect, names, now, guard } = this.#parts;
    const [count, stored] = [dialect.integer(numbers), (column: string) => dialect.stored(column)];
    const rows = inOrder([...lanes].map(([digest, { name, number }]) => ({ digest, name, number })));
    const greatest = (...values: readonly Sql[]): Sql =>
      fragment`${raw(dialect.greatest)}(${joined(values)})`;
    const above = dialect.numbersAbove(names.tasks, dialect.text(queue));
    const due = dialect.proposed("due_us", now);
    return {
      find: () =>
        dialect.upsert({
          into: names.lanes,
          inputs: { digest: "digest", name: "text", number: "integer", version: "integer" },
          rows: rows.map(({ digest, name, number }) => ({
            digest,
            name: encodeText(name),
            number,
            // A lane that was removed and comes again must not be taken for the one that was read.
            version: randomInt(highestVersion),
          })),
          columns: (input) => ({
            digest: input("digest"),
            queue: dialect.text(queue),
            lane: input("name"),
            // A claim moves it where its oldest task is due later.
            due_us: now,
            last_number: fragment`${greatest(input("number"), now, above)} + ${count}`,
            version: input("version"),
          }),
          guard,
          set: {
            last_number: greatest(
              fragment`${stored("last_number")} + ${count}`,
              dialect.proposed("last_number", fragment`${now} + ${count}`),
            ),
            version: fragment`${stored("version")} + 1`,
            ...(isDue
              ? {
                  due_us: fragment`CASE WHEN ${stored("token")} IS NULL AND ${stored("due_us")} > ${due} THEN ${due} ELSE ${stored("due_us")} END`,
                }
              : {}),
          },
          giving: "last_number",
        }),
    };
  }

  /** Finds lanes that are as they were read, without those that somebody has locked. */
  #asRead(lanes: readonly LaneVersion[]): Part {
    const { dialect } = this.#parts;
    const digests = lanes.map(({ lane }) => lane);
    const versions = this.#each("lane.digest", "integer", lanes, ({ lane, version }) => [lane, version]);
    return {
      find: () => [
        fragment`SELECT ${dialect.found(raw("lane.digest"))} ${this.#lane}
WHERE ${this.#guarded("lane.digest", digests)} AND lane.version = ${versions} ${dialect.skipLocked}`,
      ],
    };
  }

  /** Ends the attempts of found lanes. */
  #letGo(ended: readonly (TaskOfLane & { readonly change: TaskChange })[]): Part {
    const { dialect, names } = this.#parts;
    return {
      change: (found) =>
        dialect.changeBoth(this.#free(found), {
          of: names.tasks,
          as: "task",
          set: this.#ended(ended),
          where: found.tasksOf(ended),
        }),
    };
  }

  /** Lets lanes go on: due, so that a claim looks for the oldest task, waits for that one, or removes the lane. */
  #free(found: Found): Change {
    const { names, now } = this.#parts;
    const set = { token: raw("NULL"), task: raw("NULL"), due_us: now, version: nextVersion };
    return { of: names.lanes, as: "lane", set, where: found.has(raw("lane.digest")) };
  }

  #ended(tasks: readonly ChangedTask[]): Readonly<Record<string, Sql>> {
    return { ...this.#changed(tasks), token: raw("NULL"), leased_us: raw("NULL") };
  }

  /** All of the tasks change in the same columns. */
  #changed(tasks: readonly ChangedTask[]): Readonly<Record<string, Sql>> {
    const { dialect, now, taskRetentionMs } = this.#parts;
    const [first] = tasks;
    if (first === undefined) return {};
    const { state, attempts, failures, dueInMs } = first.change;
    const each = (type: InputType, valueOf: (change: TaskChange) => Input): Sql =>
      this.#each("task.digest", type, tasks, ({ task, change }) => [task, valueOf(change)]);
    return {
      state: raw(`'${state}'`),
      ...(attempts === undefined ? {} : { attempts: each("integer", (change) => change.attempts) }),
      ...(failures === undefined ? {} : { failures: each("text", (change) => change.failures) }),
      ...(dueInMs === undefined ? {} : { due_us: this.#after(dialect.integer(dueInMs)) }),
      ...(state === "open" ? {} : { ended_us: now }),
      ...(state === "done" ? { until_us: this.#after(dialect.integer(taskRetentionMs)) } : {}),
    };
  }

  /** A value for each row, by its digest. */
  #each<T>(
    column: string,
    type: InputType,
    rows: readonly T[],
    valueOf: (row: T) => readonly [digest: string, value: Input],
  ): Sql {
    return this.#parts.dialect.each(raw(column), type, rows.map(valueOf));
  }

  #guarded(column: string, digests: readonly string[]): Sql {
    return fragment`${this.#parts.guard} AND ${this.#among(column, digests)}`;
  }

  #among(column: string, digests: readonly string[]): Sql {
    return this.#parts.dialect.among(raw(column), digests);
  }

  /** So many milliseconds from now. In SQL, since the greatest ones are no safe integers any more as microseconds. */
  #after(milliseconds: Sql): Sql {
    return fragment`${this.#parts.now} + ${milliseconds} * 1000`;
  }
}

interface ChangedTask {
  readonly task: string;
  readonly change: TaskChange;
}

/** A lane's name, and a number that its later ones are above. */
interface LaneNumber {
  readonly name: string;
  readonly number: number;
}

const taskInputs = {
  digest: "digest",
  lane: "digest",
  behind: "integer",
  id: "text",
  entity: "text",
  body: "text",
  delay: "integer",
} as const;

/** Of a new lane: far from the greatest safe integer, since writes raise it. */
const highestVersion = 2 ** 47;

const nextVersion = raw("lane.version + 1");

const taskColumns =
  raw(`task.queue, task.id, task.entity, task.state, task.body, task.attempts, task.failures,
  task.added_us, task.due_us, task.ended_us`);

function inOrder<T extends { readonly digest: string }>(rows: T[]): readonly T[] {
  // oxlint-disable-next-line unicorn/no-array-sort -- toSorted is newer than the library that the compiler knows
  return rows.sort((a, b) => (a.digest < b.digest ? -1 : 1));
}
