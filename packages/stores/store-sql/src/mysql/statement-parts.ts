import type { SqlValue } from "@countersign/idempotency";
import type { ResolvedMysqlOptions } from "./options.ts";

export type Statement = readonly [text: string, values: readonly SqlValue[]];

export const setSavepoint: Statement = ["SAVEPOINT countersign", []];
/** Fails where the savepoint's transaction has ended, or where none was open. */
export const releaseSavepoint: Statement = ["RELEASE SAVEPOINT countersign", []];

/** SQL: microseconds since 1970, the same throughout a statement, whatever the session's time zone is. */
const serverClock = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/** Writes "now" into a statement: the server's clock, or the one of the options as a literal. */
export function clockOf({ now }: Pick<ResolvedMysqlOptions<unknown>, "now">): () => string {
  return now ?? (() => serverClock);
}

/** Milliseconds, a number or a parameter, as microseconds: in SQL, since the greatest ones are no safe integers any more. */
export function microseconds(milliseconds: number | "?"): string {
  return `${milliseconds} * 1000`;
}

/**
 * Begins a statement that waits for a locked row so long at most. A comment to MySQL, which knows no bound for one statement: there the
 * session's own holds.
 */
export function waitingFor(lockTimeoutMs: number): string {
  return `/*M! SET STATEMENT innodb_lock_wait_timeout = ${seconds(lockTimeoutMs)} FOR */ `;
}

/** Whole seconds, as MariaDB's time-outs have them. At least one: 0 means another thing to each of them. */
export function seconds(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / 1_000));
}

/** More than any column can be raised by: a statement with it fails. A condition would not do: it would change no row, which is an answer. */
const tooMuch = "9223372036854775807";

// Comments that only MariaDB reads: MySQL has no variable that tells of a transaction. See Engine.change().
/** Whether a statement commits by itself. A step in somebody's transaction can be undone after it was answered. */
export const isAlone = "(@@autocommit = 1 /*M! AND @@in_transaction = 0 */)";

/** 0 in a statement that commits by itself; another one fails on MariaDB. On MySQL the database library finds out, see Engine.change(). */
export const zeroIfAlone = `/*M! IF(@@in_transaction = 0 AND @@autocommit = 1, 0, ${tooMuch}) + */ 0`;

/** Whether a transaction is open, or begins with this statement. True on MySQL, where Engine.assertOpen() has asked before. */
export const isInTransaction =
  "(/*M! @@in_transaction = 1 OR @@autocommit = 0 OR */ /*!80000 TRUE OR */ FALSE)";

/** 0 where a transaction is open; elsewhere the statement fails. See {@link isInTransaction}. */
export const zeroIfOpen = `IF(${isInTransaction}, 0, ${tooMuch})`;

/** Set while a session runs one of the stores' transactions, to bytes that no other transaction has. */
export const runVariable = "@countersign_run";

/** 0 on the session of the run, whose bytes are the value; elsewhere the statement fails. */
export const zeroOnSession = `IF(${runVariable} = ?, 0, ${tooMuch})`;

/** A statement with its values in the text. Texts in hexadecimal: no setting of the session reads that otherwise. */
export function inlined([text, values]: Statement): string {
  const literals = values.map((value) =>
    typeof value === "string" || value instanceof Uint8Array
      ? `x'${Buffer.from(value).toString("hex")}'`
      : String(value),
  );
  return text.replaceAll("?", () => literals.shift() ?? "?");
}
