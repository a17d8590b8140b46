import type { Database } from "@countersign/idempotency";
import { errnoOf, isReadOnly, noSavepoint } from "./errors.ts";
import { factoryName } from "./options.ts";
import type { Statement } from "./statement-parts.ts";
import type { TableNames } from "./table-names.ts";

export const setSavepoint: Statement = ["SAVEPOINT countersign", []];
export const releaseSavepoint: Statement = ["RELEASE SAVEPOINT countersign", []];

/** Throws a TypeError unless the library's transactions are some, and an Error unless they may write. On no real key. */
export async function assertTransactions<Tx>(database: Database<Tx>, names: TableNames): Promise<void> {
  await database.run((tx) => prove(database, tx, names));
}

async function prove<Tx>(database: Database<Tx>, tx: Tx, names: TableNames): Promise<void> {
  try {
    await database.query(tx, ...setSavepoint);
    await database.query(tx, `UPDATE ${names.schema} SET version = version WHERE id = 0`, []);
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
