import {
  isInTransaction,
  microseconds,
  type Statement,
  waitingFor,
  zeroIfAlone,
  zeroIfOpen,
} from "./statement-parts.ts";
import type { ResolvedMysqlOptions } from "./options.ts";
import { taskColumns } from "./task-row.ts";

type Names = Pick<ResolvedMysqlOptions<unknown>, "names" | "lockTimeoutMs" | "taskRetentionMs">;

interface NewestRow {
  readonly digest: Uint8Array;
  readonly scope: Uint8Array;
  readonly subject: Uint8Array;
  /** Sorts as its moment does. */
  readonly time: string;
}

export function places(count: number, place = "?"): string {
  return Array.from({ length: count }, () => place).join(", ");
}

/**
 * The statements of one moment, `now`. Rows are locked by primary keys alone: at REPEATABLE READ a lock on another index also locks gaps, in
 * which others insert. First the lane, then its task.
 */
export function workStatements({ names, lockTimeoutMs, taskRetentionMs }: Names, now: string) {
  const { lanes, tasks, queues, newest } = names;
  const bound = waitingFor(lockTimeoutMs);
  // Lets the lane go on. It is due, so that a claim looks for its oldest task: it waits for that one, and goes when there is none.
  const letGo = `lane.token = NULL, lane.task = NULL, lane.due_us = ${now}, task.token = NULL, task.leased_us = NULL`;
  // A dead task that runs again may be older.
  const wait = `task.due_us = ${now} + ${microseconds("?")}, ${letGo}`;
  const ended = (state: "done" | "dead"): string => `task.state = '${state}', task.ended_us = ${now}`;
  const remembered = `task.until_us = ${now} + ${microseconds(taskRetentionMs)}`;
  // Values: those of `set`, then the task.
  const change = (set: string, start: string): string => `${start}UPDATE ${tasks} AS task
STRAIGHT_JOIN ${lanes} AS lane ON lane.digest = task.lane SET ${set} WHERE task.digest = ? AND task.state = 'open'`;
  return {
    /**
     * Gives a row, and locks the lane, while the token owns the task. The subqueries read without a lock: an adder locks tasks of lanes it
     * holds. task, task, task; token, task
     */
    lockOwned: (
      start: string,
    ): string => `${start}SELECT (SELECT attempts FROM ${tasks} WHERE digest = ?) AS attempts,
  (SELECT failures FROM ${tasks} WHERE digest = ?) AS failures, ${now} DIV 1000 AS now_ms, ${isInTransaction} AS is_open
FROM ${lanes} AS lane WHERE lane.digest = (SELECT lane FROM ${tasks} WHERE digest = ?) AND lane.token = ? AND lane.task = ? FOR UPDATE`,
    // task
    finish: change(`${ended("done")}, ${remembered}, ${letGo}`, ""),
    // failures, task
    kill: change(`task.failures = ?, ${ended("dead")}, ${letGo}`, bound),
    // failures, delay, task
    postpone: change(`task.failures = ?, ${wait}`, bound),
    // so many tasks
    owned: (count: number): string => `SELECT lane.digest AS lane, lane.task, lane.token FROM ${tasks} AS task
JOIN ${lanes} AS lane ON lane.digest = task.lane AND lane.task = task.digest WHERE task.digest IN (${places(count)})`,
    // tasks, then tokens with them. One that is locked is being ended: its lane is locked too, and a heartbeat must not wait.
    lockLeases: (count: number): string => `${bound}SELECT digest FROM ${tasks} FORCE INDEX (PRIMARY)
WHERE digest IN (${places(count)}) AND (token, digest) IN (${places(count, "(?, ?)")}) FOR UPDATE SKIP LOCKED`,
    // lease; tasks, locked
    extend: (count: number): string => `${bound}UPDATE ${tasks} FORCE INDEX (PRIMARY)
SET leased_us = ${now} + ${microseconds("?")} WHERE digest IN (${places(count)})`,
    // delay; lanes, then tokens with their tasks
    giveBack: (count: number): string => `${bound}UPDATE ${lanes} AS lane FORCE INDEX (PRIMARY)
STRAIGHT_JOIN ${tasks} AS task ON task.digest = lane.task SET task.attempts = GREATEST(task.attempts - 1, 0) + ${zeroIfAlone}, ${wait}
WHERE lane.digest IN (${places(count)}) AND (lane.token, lane.task) IN (${places(count, "(?, ?)")})`,
    /** Writes nothing where it would commit alone; then gives `is_newest`. */
    advance: ({ digest, scope, subject, time }: NewestRow): readonly Statement[] => [
      [
        `INSERT INTO ${newest} (digest, scope, subject, newest) VALUES (IF(1 + ${zeroIfOpen} = 1, ?, NULL), ?, ?, ?)
ON DUPLICATE KEY UPDATE newest = GREATEST(newest, ?)`,
        [digest, scope, subject, time, time],
      ],
      [`SELECT newest = ? AS is_newest FROM ${newest} WHERE digest = ? FOR UPDATE`, [time, digest]],
    ],
    counts: `SELECT queue, state AS fact, COUNT(*) AS value FROM ${tasks} GROUP BY queue, state
UNION ALL SELECT lane.queue, 'running', COUNT(*) FROM ${lanes} AS lane JOIN ${tasks} AS task ON task.digest = lane.task
  WHERE task.leased_us > ${now} GROUP BY lane.queue
UNION ALL SELECT queue, 'oldest', (${now} - added_us) DIV 1000 FROM (SELECT queue, (SELECT added_us FROM ${tasks} FORCE INDEX (states)
  WHERE queue = known.queue AND state = 'open' ORDER BY number LIMIT 1) AS added_us
  FROM (SELECT DISTINCT queue FROM ${lanes}) AS known) AS heads WHERE added_us IS NOT NULL`,
    pauses: `SELECT queue, paused_us DIV 1000 AS paused_ms, paused_by, note FROM ${queues}`,
    // task
    read: `SELECT ${taskColumns} FROM ${tasks} WHERE digest = ?`,
    // queue, by, note, by, note
    pause: `${bound}INSERT INTO ${queues} (queue, paused_us, paused_by, note) VALUES (?, ${now} + ${zeroIfAlone}, ?, ?)
ON DUPLICATE KEY UPDATE paused_us = ${now}, paused_by = ?, note = ?`,
    // queue
    resume: `${bound}DELETE FROM ${queues} WHERE queue = ? AND 1 + ${zeroIfAlone} = 1`,
    // so many tasks
    deadOf: (count: number): string =>
      `SELECT digest, lane FROM ${tasks} WHERE digest IN (${places(count)}) AND state = 'dead'`,
    // queue, microseconds
    deadSince: `SELECT digest, lane FROM ${tasks} FORCE INDEX (states) WHERE queue = ? AND state = 'dead' AND ended_us >= ${microseconds("?")}`,
    // so many tasks
    lockDead: (
      count: number,
    ): string => `${bound}SELECT digest, attempts, failures, ${now} DIV 1000 AS now_ms FROM ${tasks} FORCE INDEX (PRIMARY)
WHERE digest IN (${places(count)}) AND state = 'dead' FOR UPDATE`,
    // so many tasks, locked
    reopen: (count: number): string => `UPDATE ${tasks} FORCE INDEX (PRIMARY)
SET state = 'open', attempts = 0, due_us = ${now}, ended_us = NULL WHERE digest IN (${places(count)})`,
    // failures, a task, locked
    discard: `UPDATE ${tasks} AS task SET task.failures = ?, ${ended("done")}, ${remembered} WHERE task.digest = ?`,
  };
}
