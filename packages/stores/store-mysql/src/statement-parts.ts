import type { SqlValue } from "@countersign/idempotency";
import type { ResolvedMysqlOptions } from "./options.ts";

export type Statement = readonly [text: string, values: readonly SqlValue[]];

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

/**
 * Begins a statement that writes. A session's own sql_mode could cut texts that are too long, or let assignments no longer see those on
 * their left. `lockTimeoutMs` is left out in a transaction whose session has a bound already.
 */
export function forStatement(lockTimeoutMs?: number): string {
  const wait = lockTimeoutMs === undefined ? "" : `, innodb_lock_wait_timeout = ${seconds(lockTimeoutMs)}`;
  return `SET STATEMENT sql_mode = 'STRICT_ALL_TABLES'${wait} FOR `;
}

/** Whole seconds, as MariaDB's time-outs have them. At least one: 0 means another thing to each of them. */
export function seconds(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / 1_000));
}

// By a variable that MySQL does not have: nothing else asks for it.
const alone = "(@@in_transaction = 0 AND @@autocommit = 1)";

/** Whether a statement commits by itself. A step in somebody's transaction can be undone after it was answered. */
export const isAlone = `${alone} AS is_alone`;

/**
 * 0 in a statement that commits by itself; in another one more than a version can be raised by, so that it fails. A condition would not do: it
 * would change no row, which is an answer.
 */
export const zeroIfAlone = `IF(${alone}, 0, 9223372036854775807)`;

/** Whether a transaction is open, or begins with this statement. */
export const isInTransaction = "(@@in_transaction = 1 OR @@autocommit = 0)";

/** A statement with its values in the text. Texts in hexadecimal: no setting of the session reads that otherwise. */
export function inlined([text, values]: Statement): string {
  const literals = values.map((value) =>
    typeof value === "string" || value instanceof Uint8Array
      ? `x'${Buffer.from(value).toString("hex")}'`
      : String(value),
  );
  return text.replaceAll("?", () => literals.shift() ?? "?");
}
