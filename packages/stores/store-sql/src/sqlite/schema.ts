import { OptionError } from "@countersign/core";
import { option, type OptionOwner, type OptionRule } from "@countersign/core/internal";
import { keyTables, ofAttempt, type KeyTableForm } from "../keys/key-schema.ts";
import { tablesSql, type Table } from "../sql/tables.ts";
import { taskTables } from "../work/task-table.ts";
import { dialect } from "./dialect.ts";
import { type SqliteDatabase, integerOf, singleRow, withImmediateTransaction } from "./connection.ts";

/** The version of the tables that this release makes, reads and writes. */
export const sqliteSchemaVersion = 3;

/** Milliseconds since 1970 by SQLite's own clock. */
export const engineClock = "CAST(round(unixepoch('now', 'subsec') * 1000) AS INTEGER)";

/** `main` is named so that no temporary table of the same name can stand in front. */
export function tableNames(table: string) {
  return {
    idempotency: `"main"."${table}_idempotency"`,
    nonces: `"main"."${table}_nonces"`,
    lanes: `"main"."${table}_lanes"`,
    tasks: `"main"."${table}_tasks"`,
    queues: `"main"."${table}_queues"`,
    newest: `"main"."${table}_newest"`,
    answers: `"main"."${table}_answers"`,
    schema: `"main"."${table}_schema"`,
  };
}

/** Returns the SQL by which the stores create their tables. Repeatable. `table` is the prefix of the names, default `countersign`. */
export function sqliteMigration(table?: string): string {
  return migration(tablePrefix.read(table, "sqliteMigration", "table"));
}

function migration(table: string): string {
  const names = tableNames(table);
  const { idempotency, nonces } = keyTables(keyForm);
  return `CREATE TABLE IF NOT EXISTS ${names.schema} (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL,
  -- the highest fence among the keys that were pruned: a key that comes back begins above it
  fence_floor INTEGER NOT NULL
) STRICT;
INSERT INTO ${names.schema} (id, version, fence_floor) VALUES (1, ${sqliteSchemaVersion}, 0) ON CONFLICT (id) DO NOTHING;

${tableStatements(table, { idempotency, nonces, ...taskTables })}`;
}

const keyForm: KeyTableForm = {
  ids: {
    idempotency: [["key", "text", "NOT NULL PRIMARY KEY"]],
    nonces: [
      ["scope", "text", "NOT NULL"],
      ["nonce", "text", "NOT NULL"],
    ],
    answers: [["token", "text", "NOT NULL PRIMARY KEY", ofAttempt]],
  },
  nonceKey: "scope, nonce",
  until: "until_ms",
  order: "key",
  suffixes: { until: "until", open: "unsettled" },
};

type Tables = ReturnType<typeof tableNames>;

function tableStatements<Name extends keyof Tables>(
  table: string,
  tables: Readonly<Record<Name, Table>>,
): string {
  const made = tablesSql<Name>(tables, {
    dialect,
    names: tableNames(table),
    create: "CREATE TABLE IF NOT EXISTS",
    createIndex: (suffix) => `CREATE INDEX IF NOT EXISTS "main"."${table}_${suffix}"`,
    indexed: (of) => `"${table}_${of}"`,
    // Bodies and responses are long.
    options: (of) => (of === "tasks" || of === "answers" ? " STRICT" : " STRICT, WITHOUT ROWID"),
  });
  return made.map(({ statements }) => statements.map((statement) => `${statement};\n`).join("")).join("\n");
}

/**
 * Creates missing tables. Leaves those of a later version that takes this one beside it; throws on other versions, and on a lost primary
 * key.
 */
export function ensureSchema(factoryName: string, database: SqliteDatabase, table: string): void {
  withImmediateTransaction(database, () => {
    if (!isLater(factoryName, database, table)) database.exec(migration(table));
  });
  assertKey(factoryName, database, `${table}_idempotency`, "key");
  assertKey(factoryName, database, `${table}_nonces`, "scope, nonce");
  assertKey(factoryName, database, `${table}_lanes`, "digest");
  assertKey(factoryName, database, `${table}_tasks`, "digest");
  assertKey(factoryName, database, `${table}_queues`, "digest");
  assertKey(factoryName, database, `${table}_newest`, "digest");
}

/** Whether the tables are of a later version that takes this one beside it. Throws on versions that this one does not know. */
function isLater(factoryName: string, database: SqliteDatabase, table: string): boolean {
  const query = "SELECT 1 AS one FROM main.sqlite_schema WHERE type = 'table' AND lower(name) = lower(?)";
  if (database.prepare(query).all(`${table}_schema`).length === 0) return false;
  const row = singleRow(database.prepare(`SELECT * FROM ${tableNames(table).schema} WHERE id = 1`).get());
  const version = integerOf(row["version"]);
  if (version === sqliteSchemaVersion) return false;
  if (version > sqliteSchemaVersion && takesThisRelease(row["oldest"])) return true;
  throw new Error(
    `${factoryName}: the tables ${table}_* have schema version ${version}, this release needs ${sqliteSchemaVersion}`,
  );
}

/**
 * `oldest`: the oldest version whose processes may still use the tables, in a column that a later version adds. One that does not say so may
 * have changed the tables in any way.
 */
function takesThisRelease(oldest: unknown): boolean {
  return (oldest ?? undefined) !== undefined && integerOf(oldest) <= sqliteSchemaVersion;
}

/** Throws when a table takes the same key twice, as a copy by CREATE TABLE … AS does. */
export function assertKey(
  factoryName: string,
  database: SqliteDatabase,
  name: string,
  columns: string,
): void {
  try {
    // Never run. SQLite prepares it only where a primary key or a unique index holds these columns.
    database.prepare(
      `INSERT INTO "main"."${name}" (${columns}) SELECT ${columns} FROM "main"."${name}" WHERE 0 ON CONFLICT (${columns}) DO NOTHING`,
    );
  } catch (error) {
    if (!String(error).includes("ON CONFLICT clause")) throw error;
    const remedy = `CREATE UNIQUE INDEX "main"."${name}_key" ON "${name}" (${columns})`;
    throw new Error(`${factoryName}: the table ${name} has lost its primary key; run: ${remedy}`, {
      cause: error,
    });
  }
}

/** Returns the SQL by which `createAnswers` creates its table. Repeatable. `table` is the prefix, default `countersign`. */
export function sqliteAnswersMigration(table?: string): string {
  return answersMigration(tablePrefix.read(table, "sqliteAnswersMigration", "table"));
}

export function answersMigration(table: string): string {
  return tableStatements(table, { answers: keyTables(keyForm).answers });
}

const prefixForm = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;

export const tablePrefix: OptionRule<string> = option.own(readTablePrefix, '"countersign"');

function readTablePrefix(table: unknown = "countersign", owner: OptionOwner, name: string): string {
  // Names that begin with sqlite_ belong to SQLite itself.
  if (typeof table === "string" && prefixForm.test(table) && !/^sqlite_/i.test(table)) return table;
  const what = "must be 1 to 63 letters, digits and underscores, not beginning with a digit or sqlite_";
  throw new OptionError(owner, { option: name, what });
}

/** Takes the write lock of an open transaction, by exec(), and writes no page. */
export function takeWriteLock(table: string): string {
  return `UPDATE ${tableNames(table).schema} SET fence_floor = fence_floor WHERE 0`;
}
