/** The database's clock; a parameter that is not null stands in for it in tests. */
export function clock(parameter: string): string {
  return `coalesce(${parameter}::timestamptz, clock_timestamp())`;
}

/** A number of milliseconds as an interval. */
export function milliseconds(parameter: string): string {
  return `${parameter}::float8 * interval '1 millisecond'`;
}

/** Whole milliseconds from one time to another, rounded up: what is left of a live lease is never 0. */
export function millisecondsFrom(start: string, end: string): string {
  return `ceil(extract(epoch FROM ${end} - ${start})::numeric * 1000)::text`;
}

/** Durations beyond this, 100,000 years, lead out of the calendar. */
export const longestMs = 3_155_760_000_000_000;

// A claim that a crash of the server undoes would let a second attempt in beside the first.
const durableCommit =
  "CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END";

/**
 * A CTE of one row that sets, for the transaction of this one statement, how long it waits for a row, and that its commit is
 * durable. To be joined: the executor takes its row before it locks one of the table. It has no row, and nothing happens, where
 * a transaction that has written is open on the connection: what the statement does there could be rolled back after it was
 * answered.
 */
export function settings(lockTimeoutMs: number): string {
  return `settings AS MATERIALIZED (
  SELECT set_config('lock_timeout', '${lockTimeoutMs}', true), ${durableCommit} WHERE ${isAlone})`;
}

/** The settings of a statement in the caller's transaction, whose patience is the caller's business. */
export const callersSettings: string = `settings AS MATERIALIZED (SELECT ${durableCommit})`;

/** Whether no transaction that has written is open on the connection. */
export const isAlone = "txid_current_if_assigned() IS NULL";
