import { type Statement, seconds } from "./statement-parts.ts";

/** The session's own settings, by the variable of the connection that keeps them meanwhile. */
const settings = {
  innodb_lock_wait_timeout: "@countersign_lock_wait",
  // Waits for DDL, by default for a day.
  lock_wait_timeout: "@countersign_metadata_wait",
  idle_write_transaction_timeout: "@countersign_idle",
  // The last to be given back: that commits.
  autocommit: "@countersign_autocommit",
} as const;

const kept = Object.entries(settings)
  .map(([name, variable]) => `${variable} = @@SESSION.${name}`)
  .join(", ");

/**
 * Bounds an open transaction's waits, and ends autocommit: after a deadlock, which rolls the whole back, the next INSERT of a handler that
 * swallowed it would otherwise commit alone, a payment without its key.
 */
export function takeSession(waitMs: number, idleTimeoutMs: number): Statement {
  const wait = seconds(waitMs);
  const text = `SET ${kept}, SESSION innodb_lock_wait_timeout = ${wait}, SESSION lock_wait_timeout = ${wait},
  SESSION idle_write_transaction_timeout = ${seconds(idleTimeoutMs)}, SESSION autocommit = 0`;
  return [text, []];
}

/** Commits, and gives the session's settings back. A pool's next user must find the connection as it was. */
export const giveSessionBack: Statement = [
  `SET ${Object.entries(settings)
    .map(([name, variable]) => `SESSION ${name} = ${variable}`)
    .join(", ")}`,
  [],
];

/** The last resort: a session that is not as it was must not go back to the pool. */
export const endSession: Statement = ["KILL CONNECTION_ID()", []];

/** Of ROLLBACK. Warning 1196: a table without transactions, such as one of MyISAM, has kept what was written. */
export const rowsLeft: readonly Statement[] = [
  "IF @@warning_count > 0 THEN GET DIAGNOSTICS CONDITION 1 @countersign_left = MYSQL_ERRNO; ELSE SET @countersign_left = 0; END IF",
  "SELECT @countersign_left = 1196 AS rows_left",
].map((text) => [text, []]);
