import { runStepsIn } from "@countersign/idempotency/door";
import { reasonOf, SettingError, type SqliteLocation } from "@countersign/example-settings";
import { openReasonOf, preparedFile } from "@countersign/example-settings/sqlite-file";
import { createSqliteStores, withImmediateTransaction, type SqliteStores } from "@countersign/store-sqlite";
import Database from "libsql";
import type { LedgerDatabase, SqlDialect } from "../ledgers/database.ts";
import { partyLedgerOn } from "../ledgers/parties.ts";
import { allStatements, tables } from "../ledgers/tables.ts";
import type { PlatformStorage } from "./storage.ts";

/** One file is one schema, whose tables have a rowid by themselves. */
const dialect: SqlDialect = { schema: "", text: "TEXT", rowid: "", strict: "STRICT" };

/** Everything on one connection: a payout and the end of its key are one transaction. */
export interface SqliteStorage extends PlatformStorage {
  readonly connection: Database.Database;
}

/** Opens the database and creates what is missing. Throws a SettingError. `now` gives milliseconds since 1970. */
export function openSqliteStorage(location: SqliteLocation, now: () => number = Date.now): SqliteStorage {
  if (location.kind === "memory" && process.env["NODE_ENV"] === "production") {
    const expected = "sqlite:<path> in production (memory forgets every paid key)";
    throw new SettingError("STORE_URL", expected, "memory:");
  }
  try {
    const file = location.kind === "memory" ? ":memory:" : preparedFile(location.file);
    return storageOn(new Database(file), now);
  } catch (error) {
    if (error instanceof SettingError) throw error;
    throw new SettingError("STORE_URL", `a database that can be opened and written (${openReasonOf(error)})`);
  }
}

function storageOn(database: Database.Database, now: () => number): SqliteStorage {
  let stores: SqliteStores | undefined;
  try {
    refuseOthers(database);
    // Sets and reads back what makes a commit durable.
    stores = createSqliteStores({ database });
    database.exec("PRAGMA foreign_keys = ON");
    database.exec(tables(dialect));
    const close = (): Promise<void> => {
      stores?.close();
      // So that the database file alone is complete, for whoever copies it.
      database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      database.close();
      return Promise.resolve();
    };
    const ledgers = ledgerDatabase(database, now);
    return {
      connection: database,
      stores,
      work: stores,
      database: ledgers,
      parties: partyLedgerOn(ledgers),
      close,
    };
  } catch (error) {
    stores?.close();
    database.close();
    throw error;
  }
}

// The file of a sandbox, say, has tables of the same names. What marks a file: https://www.sqlite.org/fileformat.html, offset 68.
function refuseOthers(database: Database.Database): void {
  const [applicationId] = database.prepare("PRAGMA application_id").pluck().all();
  if (applicationId !== 0) throw new Error("it belongs to another program");
}

/** Ledgers on it answer at once. */
function ledgerDatabase(database: Database.Database, now: () => number): LedgerDatabase {
  const prepared = prepareAll(database);
  return {
    dialect,
    now: () => new Date(now()).toISOString(),
    // An open transaction is that of the connection.
    query: ([sql, ...values]) => (prepared.get(sql) ?? database.prepare(sql)).all(...values),
    transaction: (steps, tx) =>
      tx === undefined
        ? withImmediateTransaction(database, (own) => runStepsIn("sync", steps(own)))
        : runStepsIn("sync", steps(tx)),
  };
}

function prepareAll(database: Database.Database): ReadonlyMap<string, Database.Statement> {
  try {
    return new Map(allStatements(dialect).map((sql) => [sql, database.prepare(sql)]));
  } catch (error) {
    throw new SettingError("STORE_URL", `a database with the tables of the platform (${reasonOf(error)})`);
  }
}
