import type { Database } from "@countersign/idempotency";
import { errnoOf, isReadOnly, noSavepoint, readOnlyTransaction } from "./errors.ts";
import { factoryName } from "./options.ts";
import type { Server } from "./server-check.ts";
import { giveSessionBack, takeSession } from "./session.ts";
import { releaseSavepoint, setSavepoint } from "./statement-parts.ts";
import type { TableNames } from "./table-names.ts";

/**
 * Throws a TypeError unless the library's transactions are some, and an Error unless they may write, and the server refuses what is
 * written after their end. On no real key.
 */
export async function assertTransactions<Tx>(
  database: Database<Tx>,
  names: TableNames,
  server: Server,
): Promise<void> {
  await database.run(async (tx) => {
    await prove(database, tx, names);
    await database.query(
      tx,
      ...takeSession(server, { waitMs: 1_000, idleTimeoutMs: 60_000, run: new Uint8Array(1) }),
    );
    try {
      await proveEnd(database, tx, names);
    } finally {
      await database.query(tx, "ROLLBACK", []);
      await database.query(tx, ...giveSessionBack(server));
    }
  });
}

async function prove<Tx>(database: Database<Tx>, tx: Tx, names: TableNames): Promise<void> {
  try {
    await database.query(tx, ...setSavepoint);
    await database.query(tx, ...writing(names));
    await database.query(tx, ...releaseSavepoint);
  } catch (error) {
    if (isReadOnly(error)) {
      // No mistake in the app: a replica is promoted.
      throw new Error(
        `${factoryName}: the transactions of ${database.library} are read-only; connect to the primary server, with transactions that may write`,
        { cause: error },
      );
    }
    if (errnoOf(error) !== noSavepoint) throw error;
    throw new TypeError(
      `${factoryName}: ${database.library} has opened no transaction, or sends its statements over several connections; a payment and its key would not commit together`,
      { cause: error },
    );
  }
}

/** What is written behind the end of a transaction must be refused: a proxy, or a server that is another one, may not know how. */
async function proveEnd<Tx>(database: Database<Tx>, tx: Tx, names: TableNames): Promise<void> {
  await database.query(tx, "ROLLBACK", []);
  try {
    await database.query(tx, ...writing(names));
  } catch (error) {
    if (errnoOf(error) === readOnlyTransaction) return;
    throw error;
  }
  throw new Error(
    `${factoryName}: the server takes writes after a transaction on a session whose transactions are read-only; connect to MySQL or MariaDB itself`,
  );
}

/** Changes no row, of which there is none. */
function writing({ schema }: TableNames): readonly [text: string, values: readonly never[]] {
  return [`UPDATE ${schema} SET version = version WHERE id = 0`, []];
}
