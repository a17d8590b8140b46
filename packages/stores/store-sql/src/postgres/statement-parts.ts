import { isDurable } from "./durability.ts";

/** Milliseconds as an interval, up to the greatest safe integer. A literal takes no more than 24 days in PostgreSQL 13 and 14. */
export function milliseconds(amount: string | number): string {
  return `${amount}::float8 * interval '1 millisecond'`;
}

/**
 * An instant in microseconds since 1970. PostgreSQL 13 has float8 seconds, in steps of a quarter of a microsecond until 2038: rounded, a
 * later instant is never a smaller number. Not a numeric on the way: of a float8 that keeps 15 digits.
 */
export function microseconds(instant: string): string {
  return `round(extract(epoch FROM ${instant})::float8 * 1000000::float8)::bigint`;
}

/** The setting with the name of a run. The server takes it back with the end of the run's transaction, whoever ends it and why. */
export const runSetting = "countersign.run";

/** Whether a transaction that has written, or one of a run, is open on the connection. A setting that was taken back is an empty text. */
export const isInTransaction: string = `(txid_current_if_assigned() IS NOT NULL OR coalesce(current_setting('${runSetting}', true), '') <> '')`;

/** Whether none is, as far as the server says: a step inside of one can be undone after it was answered. */
export const isAlone: string = `${isInTransaction} IS NOT TRUE`;

/** For an INSERT … SELECT: bounds its wait for a row, makes it durable. False in somebody's transaction, so that nothing is written. */
export function isReadyToInsert(lockTimeoutMs: number): string {
  return `${isAlone} AND set_config('lock_timeout', '${lockTimeoutMs}', true) IS NOT NULL AND ${isDurable}`;
}

/** No key is empty. This one's row keeps the highest fence that pruning has removed. */
export const floorKey = "''";
