/** The database's clock; a parameter that is not null stands in for it in tests. */
export function clock(parameter: string): string {
  return `coalesce(${parameter}::timestamptz, clock_timestamp())`;
}

/** A number of milliseconds as an interval. The greatest safe integer still ends within PostgreSQL's calendar. */
export function milliseconds(parameter: string): string {
  return `${parameter}::float8 * interval '1 millisecond'`;
}

/** Whether no transaction that has written is open on the connection: what is done in one can be undone after it was answered. */
export const isAlone = "txid_current_if_assigned() IS NULL";

/** Whether a transaction that has written is open on the connection. */
export const hasWritten = "txid_current_if_assigned() IS NOT NULL";

/**
 * True, and makes the commit of this transaction durable where the session would not: a claim that a crash of the server undoes
 * would let a second attempt in beside the first.
 */
export const isDurable =
  "(current_setting('synchronous_commit') <> 'off' OR set_config('synchronous_commit', 'on', true) IS NOT NULL)";

/**
 * For the WHERE of an INSERT … SELECT: true, once the transaction of this one statement waits no longer than this for a row, and
 * its commit is durable. False, so that nothing is written, inside of somebody's transaction.
 */
export function isReadyToInsert(lockTimeoutMs: number): string {
  return `${isAlone} AND set_config('lock_timeout', '${lockTimeoutMs}', true) IS NOT NULL AND ${isDurable}`;
}

/**
 * The same for an UPDATE, as a CTE to join: the executor takes its row before it locks one of the table, and keeps it when it has
 * waited for that lock and looks at the row again. Conditions of the UPDATE itself are evaluated once more then, and by then the
 * statement is a transaction that has written.
 */
export function settings(lockTimeoutMs: number): string {
  return `settings AS MATERIALIZED (SELECT WHERE ${isReadyToInsert(lockTimeoutMs)})`;
}
