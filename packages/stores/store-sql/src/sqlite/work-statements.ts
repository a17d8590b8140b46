import { tableNames, engineClock } from "./schema.ts";
import type { SqliteDatabase, SqliteStatement } from "./connection.ts";
import type { ResolvedSqliteOptions } from "./options.ts";

/** The columns of a task's record. */
const recorded =
  "number, queue, id, lane, state, body, attempts, failures, added_at, due_at, ended_at" as const;

const states = ["open", "dead", "done"] as const;

/** Statements belong to the connection that prepared them. */
export type WorkStatements = ReturnType<typeof prepareWork>;

export function prepareWork({ database, table, taskRetentionMs }: ResolvedSqliteOptions) {
  const { lanes, tasks, queues, newest } = tableNames(table);
  const prepare = (sql: string): SqliteStatement => database.prepare(sql);
  const count = (state: (typeof states)[number]) =>
    `(SELECT count(*) FROM ${tasks} WHERE queue = named.queue AND state = '${state}') AS ${state}`;
  // Each arm reads an index in its order, and SQLite merges them.
  const pageOf = (state: string) =>
    `SELECT ${recorded} FROM ${tasks} WHERE queue = ? AND state = '${state}' AND number > ?`;
  const page = (...of: readonly string[]) =>
    prepare(`${of.map(pageOf).join(" UNION ALL ")} ORDER BY number LIMIT ?`);
  return {
    clock: prepare(`SELECT ${engineClock} AS now_ms`),
    addTask: prepare(
      `INSERT INTO ${tasks} (queue, id, lane, state, body, added_at, due_at) VALUES (?, ?, ?, 'open', ?, ?, ?)
       ON CONFLICT (queue, id) DO NOTHING`,
    ),
    // A lane that is there keeps its head's time.
    addLane: prepare(
      `INSERT INTO ${lanes} (queue, lane, due_at) VALUES (?, ?, ?) ON CONFLICT (queue, lane) DO NOTHING`,
    ),
    dueLanes: prepare(
      `SELECT lane, owned FROM ${lanes} WHERE queue = ? AND due_at <= ?
         AND queue NOT IN (SELECT queue FROM ${queues}) ORDER BY due_at LIMIT ?`,
    ),
    // Without statistics SQLite would read all open tasks of the queue.
    head: prepare(
      `SELECT ${recorded} FROM ${tasks} INDEXED BY "${table}_tasks_lane" WHERE queue = ? AND lane = ? AND state = 'open' ORDER BY number LIMIT 1`,
    ),
    ownLane: prepare(`UPDATE ${lanes} SET token = ?, owned = ?, due_at = ? WHERE queue = ? AND lane = ?`),
    freeLane: prepare(
      `UPDATE ${lanes} SET token = NULL, owned = NULL, due_at = ? WHERE queue = ? AND lane = ?`,
    ),
    removeLane: prepare(`DELETE FROM ${lanes} WHERE queue = ? AND lane = ?`),
    isOwned: prepare(`SELECT 1 FROM ${lanes} WHERE queue = ? AND lane = ? AND token IS NOT NULL`),
    lease: prepare(`UPDATE ${lanes} SET due_at = ? WHERE queue = ? AND lane = ?`),
    ownedTask: prepare(
      `SELECT ${recorded} FROM ${tasks} WHERE queue = ? AND id = ?
         AND number = (SELECT owned FROM ${lanes} AS mine
           WHERE mine.queue = ${tasks}.queue AND mine.lane = ${tasks}.lane AND mine.token = ?)`,
    ),
    numbered: prepare(`SELECT ${recorded} FROM ${tasks} WHERE number = ?`),
    named: prepare(`SELECT ${recorded} FROM ${tasks} WHERE queue = ? AND id = ?`),
    deadSince: prepare(
      `SELECT ${recorded} FROM ${tasks} WHERE queue = ? AND state = 'dead' AND ended_at >= ?`,
    ),
    begin: prepare(`UPDATE ${tasks} SET attempts = attempts + 1 WHERE number = ?`),
    uncount: prepare(`UPDATE ${tasks} SET attempts = attempts - 1, due_at = ? WHERE number = ?`),
    delay: prepare(`UPDATE ${tasks} SET due_at = ? WHERE number = ?`),
    note: prepare(`UPDATE ${tasks} SET failures = ? WHERE number = ?`),
    end: prepare(
      `UPDATE ${tasks} SET state = ?, ended_at = ?, until_at = ? + ${taskRetentionMs} WHERE number = ?`,
    ),
    reopen: prepare(
      `UPDATE ${tasks} SET state = 'open', attempts = 0, due_at = ?, ended_at = NULL WHERE number = ?`,
    ),
    advance: prepare(
      `INSERT INTO ${newest} AS kept (scope, subject, at) VALUES (?, ?, ?)
       ON CONFLICT (scope, subject) DO UPDATE SET at = excluded.at WHERE excluded.at >= kept.at`,
    ),
    pause: prepare(
      `INSERT INTO ${queues} (queue, paused_at, paused_by, note) VALUES (?, ?, ?, ?)
       ON CONFLICT (queue) DO UPDATE SET paused_at = excluded.paused_at, paused_by = excluded.paused_by,
         note = excluded.note`,
    ),
    resume: prepare(`DELETE FROM ${queues} WHERE queue = ?`),
    summaries: prepare(
      `SELECT named.queue, paused.paused_at, paused.paused_by, paused.note, ${states.map(count).join(", ")},
         (SELECT count(*) FROM ${lanes} WHERE queue = named.queue AND token IS NOT NULL AND due_at > ?) AS running,
         (SELECT added_at FROM ${tasks} WHERE queue = named.queue AND state = 'open' ORDER BY number LIMIT 1) AS oldest
       FROM (SELECT queue FROM ${tasks} UNION SELECT queue FROM ${queues}) AS named
       LEFT JOIN ${queues} AS paused ON paused.queue = named.queue ORDER BY named.queue`,
    ),
    pages: { all: page(...states), open: page("open"), dead: page("dead"), done: page("done") },
  };
}

/** Removes done tasks, each by the retention of the process that ended it, given the time and how many. */
export function prepareRemoval(database: SqliteDatabase, table: string): SqliteStatement {
  const { tasks } = tableNames(table);
  return database.prepare(
    `DELETE FROM ${tasks} WHERE number IN (SELECT number FROM ${tasks}
       WHERE state = 'done' AND until_at <= coalesce(?, ${engineClock}) ORDER BY until_at LIMIT ?)`,
  );
}
