import { isGuardError } from "@countersign/core";
import { causedBy } from "@countersign/core/internal";
import type { Database } from "@countersign/idempotency";
import { type Row, commitUnconfirmed, transactionBroken } from "@countersign/idempotency/store";
import { singleRow } from "../sql/values.ts";
import { isDurable, isTold, waitForStandbys } from "./durability.ts";
import { sqlStateOf } from "./errors.ts";
import { faultOf } from "./faults.ts";

/** SQL: the id of the transaction, by which {@link commit} asks what became of it. A standby has none. */
export const transactionId = "CASE WHEN pg_is_in_recovery() THEN NULL ELSE txid_current()::text END";

/** SQLSTATE: nothing tells whether the transaction has committed. */
const unknown = "08007";
const noTransaction = "25P01";

/** What a COMMIT says that was answered with ROLLBACK, or found no transaction any more. */
export function rolledBackBehind(cause?: unknown): Error {
  const what =
    "it was rolled back behind the last statement; await every statement, let its error through, and send no ROLLBACK";
  return transactionBroken(what, cause);
}

/** The id of a transaction in which nobody has asked for it; undefined when it has written nothing. Rejects when a statement has failed. */
export async function idOf<Tx>(database: Database<Tx>, tx: Tx): Promise<string | undefined> {
  const rows = await database.query(tx, "SELECT txid_current_if_assigned()::text AS id", []);
  const { id } = singleRow(rows);
  return typeof id === "string" ? id : undefined;
}

/** The last statement of a transaction where commits wait for standbys, also of one that has only looked. Gives its id. */
export const beforeCommit: string = `SELECT ${waitForStandbys} AS message, txid_current()::text AS id WHERE ${isTold}`;

/** Waits for the standbys in a transaction of its own. */
export const afterCommit: string = `SELECT ${waitForStandbys} AS message, txid_current()::text AS id WHERE ${isDurable}`;

/** Waits once more for the standbys to which a commit was sent on the same connection. Rejects with an error of class 08. */
export async function confirm<Tx>(database: Database<Tx>, tx: Tx): Promise<void> {
  try {
    const { id } = singleRow(await database.query(tx, afterCommit, []));
    assertCommitted(await commitAndAsk(database, tx, `SELECT txid_status(${String(id)}) AS outcome`));
  } catch (error) {
    throw commitUnconfirmed(error);
  }
}

/**
 * Commits the transaction with this id before the library does, whose own COMMIT then ends an empty one. The server answers a COMMIT with
 * ROLLBACK, and no error, when a statement has failed that the handler does not await; most libraries take that for a COMMIT. Throws a
 * GuardError (`transaction-broken`) when it was one, the error of a COMMIT that was refused, or one of class 08 when nobody knows.
 */
export async function commit<Tx>(database: Database<Tx>, tx: Tx, id: string): Promise<void> {
  const asked = `SELECT txid_status(${id}) AS outcome`;
  try {
    assertCommitted(await commitAndAsk(database, tx, asked));
  } catch (error) {
    if (isGuardError(error) || faultOf(error) === "unavailable") throw error;
    // It may be that of a late statement behind COMMIT, by which no other is answered any more.
    assertCommitted(await askAgain(database, tx, asked), error);
  }
}

async function commitAndAsk<Tx>(database: Database<Tx>, tx: Tx, asked: string): Promise<readonly Row[]> {
  if (database.script !== undefined) return database.script(tx, `COMMIT AND CHAIN; ${asked}`);
  await database.query(tx, "COMMIT AND CHAIN", []);
  return database.query(tx, asked, []);
}

async function askAgain<Tx>(database: Database<Tx>, tx: Tx, asked: string): Promise<readonly Row[]> {
  try {
    await database.query(tx, "ROLLBACK", []);
    return await database.query(tx, asked, []);
  } catch (error) {
    throw notKnown("the server does not say what became of the transaction", error);
  }
}

function assertCommitted(rows: readonly Row[], error?: unknown): void {
  const { outcome } = singleRow(rows);
  if (outcome === "committed") return;
  if (outcome !== "aborted") throw notKnown(`the transaction is ${String(outcome)} behind COMMIT`, error);
  const isOfCommit = faultOf(error) !== undefined && sqlStateOf(error) !== noTransaction;
  throw isOfCommit ? error : rolledBackBehind(error);
}

function notKnown(what: string, cause?: unknown): Error {
  return Object.assign(new Error(`postgres transactions: ${what}`, causedBy(cause)), { code: unknown });
}
