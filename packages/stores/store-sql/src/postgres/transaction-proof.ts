import { causedBy } from "@countersign/core/internal";
import type { Database } from "@countersign/idempotency";
import { singleRow } from "../sql/values.ts";
import { commit, transactionId } from "./commit.ts";
import { sqlStateOf } from "./errors.ts";
import { factoryName } from "./options.ts";

const state = `SELECT current_setting('transaction_read_only') AS read_only, pg_is_in_recovery() AS standby,
  pg_backend_pid()::text || ' ' || transaction_timestamp()::text AS identity, ${transactionId} AS id`;

/**
 * Throws a TypeError unless the library's transactions are some, before the first real key is written. A library that commits each
 * statement by itself would write keys as done that are never paid. Throws an Error where they may only read, which ends without a change
 * of the app: a standby is promoted, a full disk is emptied.
 */
export async function assertTransactions<Tx>(database: Database<Tx>): Promise<void> {
  const { library } = database;
  const notOne = `${library} runs no transaction on one connection: each statement would commit by itself`;
  try {
    await database.run(async (tx) => {
      await database.query(tx, "SAVEPOINT countersign_probe", []);
      const before = singleRow(await database.query(tx, state, []));
      await database.query(tx, "RELEASE SAVEPOINT countersign_probe", []);
      const after = singleRow(await database.query(tx, state, []));
      if (before["identity"] !== after["identity"]) throw fault(notOne);
      if (after["standby"] === true) {
        throw new Error(`${factoryName}: ${library} is connected to a standby; connect it to the primary`);
      }
      if (after["read_only"] === "on") throw readOnly(library);
      if (database.tellsRollback !== true) await commit(database, tx, String(after["id"]));
    });
  } catch (error) {
    const code = sqlStateOf(error);
    if (code === "25P01" || code === "3B001") throw fault(notOne, error);
    if (code === "08P01") {
      throw fault(
        `${library} is behind a pooler in statement mode; use its transaction or session mode`,
        error,
      );
    }
    if (code === "25006") throw readOnly(library, error);
    throw error;
  }
}

function fault(what: string, cause?: unknown): TypeError {
  return new TypeError(`${factoryName}: ${what}`, causedBy(cause));
}

function readOnly(library: string, cause?: unknown): Error {
  const remedy = "connect it to the primary, with transactions that may write";
  return new Error(`${factoryName}: transactions of ${library} are read only; ${remedy}`, causedBy(cause));
}
