import { isTold } from "./durability.ts";
import type { ResolvedPostgresOptions } from "./options.ts";
import { removal } from "./pruning.ts";
import { clockOf, isReadyToInsert, milliseconds, settings, wholeMilliseconds } from "./statement-parts.ts";
import { failuresWith } from "./work-functions.ts";

export type WorkStatements = ReturnType<typeof workStatements>;

/** Statements as text. A test's clock follows the parameters. */
export function workStatements(options: ResolvedPostgresOptions) {
  const { names, lockTimeoutMs, taskRetentionMs } = options;
  const { lanes, tasks, queues, newest } = names;
  const now = clockOf(options);
  const ready = settings(lockTimeoutMs);
  return {
    // $1 what the function takes, as JSON.
    add: called(names.addWork),
    claim: called(names.claimWork),
    extend: called(names.extendWork),
    settle: called(names.settleWork),
    retry: called(names.retryWork),
    // $1 scope, $2 subject, $3 time. Without a clock.
    advance: `INSERT INTO ${newest} AS kept (scope, subject, at) VALUES ($1, $2, $3)
ON CONFLICT (scope, subject) DO UPDATE SET at = excluded.at WHERE kept.at <= excluded.at RETURNING 1`,
    // $1 reason, $2 queue, $3 ids as JSON.
    discard: `WITH ${ready}
UPDATE ${tasks} AS kept SET state = 'done', ended_at = ${now(3)}, until_at = ${now(3)} + ${milliseconds(taskRetentionMs)},
  failures = ${failuresWith("$1::text", now(3))}
FROM settings WHERE kept.queue = $2 AND kept.state = 'dead' AND kept.id IN (SELECT jsonb_array_elements_text($3::text::jsonb))
RETURNING 1`,
    // $1 queue, $2 who, $3 why.
    pause: `INSERT INTO ${queues} (queue, paused_by, note, paused_at)
SELECT $1, $2, $3, ${now(3)} WHERE ${isReadyToInsert(lockTimeoutMs)}
ON CONFLICT (queue) DO UPDATE SET paused_by = excluded.paused_by, note = excluded.note, paused_at = excluded.paused_at RETURNING 1`,
    // $1 queue. Without a clock.
    resume: `WITH ${ready} DELETE FROM ${queues} AS kept USING settings WHERE kept.queue = $1 RETURNING 1`,
    summaries: `WITH open AS MATERIALIZED (
  SELECT queue, count(*) AS tasks, min(added_at) AS oldest_at FROM ${tasks} WHERE state = 'open' GROUP BY queue),
ended AS MATERIALIZED (SELECT queue, count(*) FILTER (WHERE state = 'dead') AS dead, count(*) FILTER (WHERE state = 'done') AS done
  FROM ${tasks} WHERE state IN ('dead', 'done') GROUP BY queue),
owned AS MATERIALIZED (SELECT lane.queue, count(*) AS tasks FROM ${lanes} AS lane
  JOIN ${tasks} AS task ON task.queue = lane.queue AND task.id = lane.running
  WHERE task.leased_until > ${now(0)} GROUP BY lane.queue)
SELECT queue, open.tasks::text AS open, owned.tasks::text AS running, ended.dead::text AS dead, ended.done::text AS done,
  extract(epoch FROM ${now(0)} - open.oldest_at)::text AS oldest_seconds,
  paused.paused_by, paused.note, ${wholeMilliseconds("paused.paused_at")} AS paused_ms
FROM open FULL JOIN ended USING (queue) FULL JOIN ${queues} AS paused USING (queue) LEFT JOIN owned USING (queue)
ORDER BY queue`,
    // Each by the retention of the process that ended it: a command knows none.
    removeDone: removal(tasks, `state = 'done' AND until_at <= (SELECT ${now(0)})`, "1", "until_at"),
  };
}

function called(name: string): string {
  return `SELECT ${name}($1) AS answer WHERE ${isTold}`;
}
