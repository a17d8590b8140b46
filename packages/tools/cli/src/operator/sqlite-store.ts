import { statSync } from "node:fs";
import { createSqliteStores, sqliteMigration, sqliteSchemaVersion } from "@countersign/store-sqlite";
import Database from "libsql";
import { UsageError } from "../command-io.ts";
import type { StoreCondition } from "../doctor/findings.ts";
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
  sqliteTables(table);
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

/** Reads how a file is kept, and whether it has the tables in the version of this release. Changes nothing. */
export function inspectSqlite(
  { file, shown }: FileLocation<"sqlite">,
  { table = "countersign" }: StoreTarget,
): StoreCondition {
  assertFile(file, shown);
  sqliteTables(table);
  const database = new Database(file);
  try {
    const journal = settingOf(database, "journal_mode");
    const synchronous = Number(settingOf(database, "synchronous"));
    const version = countTables(database, table, shown) < 3 ? undefined : versionOf(database, table);
    const doubts: [StoreCondition["doubts"][number][0], string][] = [];
    if (journal !== "wal") doubts.push(["sqlite-journal", `journal_mode is ${journal}, and not wal`]);
    if (synchronous < fullSynchronous) {
      doubts.push([
        "sqlite-synchronous",
        `synchronous is ${synchronous} on a new connection: a power failure can undo a commit`,
      ]);
    }
    if (version === undefined) doubts.push(["tables-missing", `there are no tables ${table}_*`]);
    else if (version !== sqliteSchemaVersion) {
      const message = `the tables have schema version ${version}, this release needs ${sqliteSchemaVersion}`;
      doubts.push([version < sqliteSchemaVersion ? "migration-pending" : "tables-newer", message]);
    }
    return { doubts, usable: version === sqliteSchemaVersion };
  } finally {
    database.close();
  }
}

const fullSynchronous = 2;

function settingOf(database: Database.Database, name: "journal_mode" | "synchronous"): string {
  const row: unknown = database.prepare(`PRAGMA ${name}`).get();
  return String(typeof row === "object" && row !== null ? Reflect.get(row, name) : undefined);
}

function versionOf(database: Database.Database, table: string): number {
  const row: unknown = database.prepare(`SELECT version FROM "main"."${table}_schema" WHERE id = 1`).get();
  return typeof row === "object" && row !== null && "version" in row ? Number(row.version) : 0;
}

/** The SQL of the tables. Throws a UsageError. */
export function sqliteTables(table: string | undefined): string {
  try {
    return sqliteMigration(table);
  } catch (error) {
    throw usageErrorOf(error);
  }
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
  if (countTables(database, table, shown) === 3) return;
  throw new UsageError(
    `--store-url: ${shown} belongs to another program, or its tables do not begin with ${table}_ (--table)`,
  );
}

/** How many of the three tables there are. */
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
