import { createSqliteStores, type SqliteStores } from "@countersign/store-sqlite";
import Database from "libsql";
import { reasonOf, SettingError } from "../setting-error.ts";
import type { SqliteLocation } from "../setting-store.ts";
import { preparedFile } from "./database-file.ts";
import { partyTables, payoutTables } from "./tables.ts";

/** A connection of the libsql driver. */
export type PlatformDatabase = Database.Database;

/** One connection, and the stores of the guards on it: a payout and the end of its key can be one transaction. */
export interface OpenedDatabase {
  readonly database: PlatformDatabase;
  readonly stores: SqliteStores;
}

/** Opens the database and creates folder, file and tables as needed. Throws a SettingError naming STORE_URL. */
export function openDatabase(store: SqliteLocation): OpenedDatabase {
  if (store.kind === "memory" && process.env["NODE_ENV"] === "production") {
    throw new SettingError(
      "STORE_URL",
      "sqlite:<path> in production (memory forgets every paid key)",
      "memory:",
    );
  }
  try {
    return open(store.kind === "memory" ? ":memory:" : preparedFile(store.file));
  } catch (error) {
    throw new SettingError("STORE_URL", `a database that can be opened and written (${openReasonOf(error)})`);
  }
}

// The driver gives the number alone: https://www.sqlite.org/rescode.html#cantopen
function openReasonOf(error: unknown): string {
  const reason = reasonOf(error);
  return /^ConnectionFailed\b.*: 14\b/.test(reason) ? "no file can be opened or created there" : reason;
}

function open(file: string): OpenedDatabase {
  const database = new Database(file);
  try {
    refuseOthers(database);
    // Sets and reads back what makes a commit durable.
    const stores = createSqliteStores({ database });
    database.exec("PRAGMA foreign_keys = ON");
    database.exec(payoutTables);
    database.exec(partyTables);
    return { database, stores };
  } catch (error) {
    database.close();
    throw error;
  }
}

// The file of a sandbox, say, has tables of the same names. What marks a file: https://www.sqlite.org/fileformat.html, offset 68.
function refuseOthers(database: PlatformDatabase): void {
  const [applicationId] = database.prepare("PRAGMA application_id").pluck().all();
  if (applicationId !== 0) throw new Error("it belongs to another program");
}
