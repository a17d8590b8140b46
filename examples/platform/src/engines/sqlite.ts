import { runStepsIn } from "@countersign/idempotency/internal";
import { SettingError, type SqliteLocation } from "@countersign/example-settings";
import { openReasonOf, preparedFile } from "@countersign/example-settings/sqlite-file";
import { type SqliteStores, createStores, withImmediateTransaction } from "@countersign/store-sql";
import Database from "libsql";
import type { LedgerDatabase, SqlDialect } from "../ledgers/database.ts";
import { allStatements, tables } from "../ledgers/tables.ts";
import type { PlatformStorage } from "./storage.ts";

/** One file is one schema, whose tables have a rowid by themselves. */
const dialect: SqlDialect = { schema: "", text: "TEXT", rowid: "", strict: "STRICT" };

/**
 * Opens the database and creates what is missing. Everything is on one connection: a payout and the end of its key are one transaction.
 * Throws a SettingError.
 */
export function openSqliteStorage(location: SqliteLocation): PlatformStorage {
  if (location.kind === "memory" && process.env["NODE_ENV"] === "production") {
    const expected = "sqlite:<path> in production (memory forgets every paid key)";
    throw new SettingError("STORE_URL", expected, "memory:");
  }
  let expected = "a database that can be opened and written";
  let database: Database.Database | undefined;
  let stores: SqliteStores | undefined;
  try {
    database = new Database(location.kind === "memory" ? ":memory:" : preparedFile(location.file));
    refuseOthers(database);
    // Sets and reads back what makes a commit durable.
    stores = createStores({ database });
    database.exec(tables(dialect));
    expected = "a database with the tables of the platform";
    return storageOn(database, stores);
  } catch (error) {
    stores?.close();
    database?.close();
    throw new SettingError("STORE_URL", `${expected} (${openReasonOf(error)})`);
  }
}

// The file of a sandbox, say, has tables of the same names. What marks a file: https://www.sqlite.org/fileformat.html, offset 68.
function refuseOthers(database: Database.Database): void {
  const [applicationId] = database.prepare("PRAGMA application_id").pluck().all();
  if (applicationId !== 0) throw new Error("it belongs to another program");
}

function storageOn(database: Database.Database, stores: SqliteStores): PlatformStorage {
  return {
    stores,
    work: stores,
    database: ledgerDatabase(database),
    close() {
      stores.close();
      // So that the database file alone is complete, for whoever copies it.
      database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      database.close();
      return Promise.resolve();
    },
  };
}

/** Ledgers on it answer at once. Throws when tables of these names are those of another program. */
function ledgerDatabase(database: Database.Database): LedgerDatabase {
  const prepared = new Map(allStatements(dialect).map((sql) => [sql, database.prepare(sql)]));
  return {
    dialect,
    // An open transaction is that of the connection.
    query: ([sql, ...values]) => (prepared.get(sql) ?? database.prepare(sql)).all(...values),
    transaction: (steps, tx) =>
      tx === undefined
        ? withImmediateTransaction(database, (own) => runStepsIn("sync", steps(own)))
        : runStepsIn("sync", steps(tx)),
  };
}
