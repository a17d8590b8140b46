import { statSync } from "node:fs";
import { createSqliteStores, sqliteMigration } from "@countersign/store-sqlite";
import Database from "libsql";
import { UsageError } from "../command-io.ts";
import { codeOf } from "../thrown.ts";
import { usageErrorOf } from "../usage-error.ts";
import type { OpenOptions, OperatorStore } from "./store.ts";
import type { FileLocation } from "./store-location.ts";
import type { StoreTarget } from "./store-options.ts";

/**
 * Opens a file in which a platform has created its tables. Throws a UsageError, and leaves the disk as it is, when there is no
 * such file or when it has no such tables: opening must not turn a typo into an empty store.
 */
export function openSqliteStore(
  { file, shown }: FileLocation<"sqlite">,
  { table = "countersign" }: StoreTarget,
  { retentionMs }: OpenOptions,
): OperatorStore {
  assertFile(file, shown);
  assertTable(table);
  const database = new Database(file);
  try {
    assertTables(database, table, shown);
    const stores = createSqliteStores({ database, table, retentionMs, pruneIntervalMs: 0 });
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

/** The SQL of the tables. Throws a UsageError. */
export function sqliteTables(table: string | undefined): string {
  try {
    return sqliteMigration(table);
  } catch (error) {
    throw usageErrorOf(error);
  }
}

function assertTable(table: string): void {
  sqliteTables(table);
}

function assertFile(file: string, shown: string): void {
  let isFile: boolean;
  try {
    isFile = statSync(file).isFile();
  } catch (error) {
    const code = codeOf(error);
    const reason =
      code === "ENOENT" ? "does not exist; this command creates no database" : `cannot be opened (${code})`;
    throw new UsageError(`--store-url: ${shown} ${reason}`, { cause: error });
  }
  if (!isFile) throw new UsageError(`--store-url: ${shown} is no file`);
}

function assertTables(database: Database.Database, table: string, shown: string): void {
  const names = ["schema", "idempotency", "nonces"].map((name) => `${table}_${name}`);
  const query =
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND lower(name) IN (lower(?), lower(?), lower(?))";
  let found: number;
  try {
    found = database.prepare(query).all(...names).length;
  } catch (error) {
    if (codeOf(error) !== "SQLITE_NOTADB") throw error;
    throw new UsageError(`--store-url: ${shown} is no SQLite database`, { cause: error });
  }
  if (found < names.length) {
    throw new UsageError(
      `--store-url: ${shown} belongs to another program, or its tables do not begin with ${table}_ (--table)`,
    );
  }
}
