import { statSync } from "node:fs";
import { createStores, sqliteMigration, sqliteSchemaVersion } from "@countersign/store-sql";
import Database from "libsql";
import { codeOf, memberOf, UsageError, inWordsOfFlags } from "../command-io.ts";
import { schemaVersionOf, type StoreCondition, versionDoubts } from "../doctor/findings.ts";
import type { Engine, OperatorStore, Remembered } from "./store.ts";
import type { StoreLocation, StoreTarget } from "./store-target.ts";

export const sqliteEngine: Engine = { open, inspect, tables: ({ table }) => sqliteTables(table) };

/** Throws a UsageError, without touching the disk, if the file or its tables are missing: a typo must not create an empty store. */
function open(target: StoreTarget, remembered: Remembered): OperatorStore {
  const { location, table = "countersign" } = target;
  const database = openFile(location, table);
  try {
    if (countTables(database, table, location.shown) < 3) {
      const reason = `belongs to another program, or its tables do not begin with ${table}_ (--table)`;
      throw new UsageError(`--store-url: ${location.shown} ${reason}`);
    }
    const stores = createStores({ database, table, ...remembered, pruneIntervalMs: 0 });
    return {
      ...stores,
      close() {
        stores.close();
        database.close();
      },
    };
  } catch (error) {
    database.close();
    throw error;
  }
}

const fullSynchronous = 2;

function inspect({ location, table = "countersign" }: StoreTarget): StoreCondition {
  const database = openFile(location, table);
  try {
    const setting = (name: string): unknown => memberOf(database.prepare(`PRAGMA ${name}`).get(), name);
    const [journal, synchronous] = [String(setting("journal_mode")), Number(setting("synchronous"))];
    const query = `SELECT * FROM "main"."${table}_schema" WHERE id = 1`;
    const version =
      countTables(database, table, location.shown) < 3
        ? undefined
        : schemaVersionOf(database.prepare(query).get());
    const doubts = [...versionDoubts(version, sqliteSchemaVersion, `${table}_*`)];
    if (journal !== "wal") doubts.push(["sqlite-journal", `journal_mode is ${journal}, and not wal`]);
    if (synchronous < fullSynchronous) {
      const message = `synchronous is ${synchronous} on a new connection: a power failure can undo a commit`;
      doubts.push(["sqlite-synchronous", message]);
    }
    return { doubts };
  } finally {
    database.close();
  }
}

function sqliteTables(table: string | undefined): string {
  return inWordsOfFlags(() => sqliteMigration(table));
}

function openFile({ address, shown }: StoreLocation, table: string): Database.Database {
  let isFile: boolean;
  try {
    isFile = statSync(address).isFile();
  } catch (error) {
    const code = codeOf(error);
    const reason =
      code === "ENOENT" ? "does not exist; this command creates no database" : `cannot be opened (${code})`;
    throw new UsageError(`--store-url: ${shown} ${reason}`, { cause: error });
  }
  if (!isFile) throw new UsageError(`--store-url: ${shown} is no file`);
  sqliteTables(table);
  return new Database(address);
}

function countTables(database: Database.Database, table: string, shown: string): number {
  const names = ["schema", "idempotency", "nonces"].map((name) => `${table}_${name}`);
  const query =
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND lower(name) IN (lower(?), lower(?), lower(?))";
  try {
    return database.prepare(query).all(...names).length;
  } catch (error) {
    if (codeOf(error) !== "SQLITE_NOTADB") throw error;
    throw new UsageError(`--store-url: ${shown} is no SQLite database`, { cause: error });
  }
}
