import type { Server } from "./server-check.ts";
import { runVariable, seconds, type Statement } from "./statement-parts.ts";

/** The session's own settings, and the variable of the connection that keeps each meanwhile. The first to be given back commits. */
function settingsOf({ accessMode, idleBound }: Server): readonly (readonly [name: string, kept: string])[] {
  return [
    ["autocommit", "@countersign_autocommit"],
    [accessMode, "@countersign_access"],
    ["innodb_lock_wait_timeout", "@countersign_lock_wait"],
    // Waits for DDL, by default for a day.
    ["lock_wait_timeout", "@countersign_metadata_wait"],
    [idleBound, "@countersign_idle"],
  ];
}

interface Taken {
  readonly waitMs: number;
  readonly idleTimeoutMs: number;
  /** See `runVariable`. */
  readonly run: Uint8Array;
}

/**
 * Bounds an open transaction's waits, and ends autocommit: after a deadlock, which rolls the whole back, the next INSERT of a handler that
 * swallowed it would otherwise commit alone, a payment without its key.
 *
 * Makes all later transactions of the session read-only, but not this one. So nothing is written any more once the handler has ended it, by
 * whatever commits or rolls back, and the store's next statement is told so: 1792.
 */
export function takeSession(server: Server, { waitMs, idleTimeoutMs, run }: Taken): Statement {
  const wait = seconds(waitMs);
  const keeping = settingsOf(server).map(([name, kept]) => `${kept} = @@SESSION.${name}`);
  const text = `SET ${keeping.join(", ")}, ${runVariable} = ?,
  SESSION innodb_lock_wait_timeout = ${wait}, SESSION lock_wait_timeout = ${wait}, SESSION ${server.idleBound} = ${seconds(idleTimeoutMs)},
  SESSION ${server.accessMode} = 1, SESSION autocommit = 0`;
  return [text, [run]];
}

/** Commits what is open, and gives the session's settings back. A pool's next user must find the connection as it was. */
export function giveSessionBack(server: Server): Statement {
  return givingBack(server, (autocommit) => autocommit, []);
}

/** The same if a condition is true. Otherwise it fails, and changes nothing: autocommit cannot be 2. */
export function giveSessionBackIf(server: Server, [condition, values]: Statement): Statement {
  return givingBack(server, (autocommit) => `IF(${condition}, ${autocommit}, 2)`, values);
}

function givingBack(server: Server, autocommitOf: (kept: string) => string, values: Statement[1]): Statement {
  const settings = settingsOf(server).map(
    ([name, kept]) => `SESSION ${name} = ${name === "autocommit" ? autocommitOf(kept) : kept}`,
  );
  // The access mode comes behind COMMIT: only then it holds for the session's next transaction too.
  return [`SET ${settings.join(", ")}, ${runVariable} = NULL`, values];
}

/** The last resort: a session that is not as it was must not go back to the pool. */
export const endSession: Statement = ["KILL CONNECTION_ID()", []];

/** Of a transaction on a session that was taken, after ROLLBACK: the next one would be read-only. */
export const startAgain: Statement = ["START TRANSACTION READ WRITE", []];

/** After ROLLBACK. Warning 1196: a table without transactions, such as one of MyISAM, has kept what was written. */
export const warnings: Statement = ["SHOW WARNINGS", []];
export const rowsLeft = 1196;
