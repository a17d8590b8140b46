import type { Database } from "@countersign/idempotency";
import type { Row } from "@countersign/idempotency/store";
import { keyTables, ofAttempt, type KeyTableForm } from "../keys/key-schema.ts";
import { tablesSql } from "../sql/tables.ts";
import { taskTables } from "../work/task-table.ts";
import { dialect } from "./dialect.ts";
import { integerOf } from "../sql/values.ts";
import { explained } from "./errors.ts";
import { assertDatabase } from "./options.ts";
import { type MysqlTables, type TableNames, resolveTables } from "./table-names.ts";

/** The version of the tables that this release makes, reads and writes. */
export const mysqlSchemaVersion = 3;

/** With `oldest`, a column that a later version adds: the oldest version whose processes may still use the tables. */
export function readVersion({ schema }: Pick<TableNames, "schema">): string {
  return `SELECT * FROM ${schema} WHERE id = 1`;
}

/** Whether this release may use the tables. Those of a later one that does not say so may have changed in any way. */
export function isUsable(row: Row | undefined): boolean {
  const version = integerOf(row?.["version"] ?? 0);
  if (version <= mysqlSchemaVersion) return version === mysqlSchemaVersion;
  const oldest = row?.["oldest"] ?? undefined;
  return oldest !== undefined && integerOf(oldest) <= mysqlSchemaVersion;
}

/** Returns the SQL that `migrate()` runs on MySQL and MariaDB, several statements, each repeatable. Throws an OptionError on a bad name. */
export function mysqlMigration(tables: MysqlTables = {}): string {
  return statements(resolveTables("mysqlMigration", tables))
    .map((statement) => `${statement};\n`)
    .join("\n");
}

/**
 * Creates what is missing of the tables in the connection's database. Repeatable, and safe from several processes at once. The user needs
 * CREATE. Leaves tables of a later release that takes this one beside it, and rejects on others; rejects with a TypeError on a bad name, or
 * on what is no database on MySQL or MariaDB.
 */
export async function migrateMysql<Tx>(database: Database<Tx>, tables: MysqlTables = {}): Promise<void> {
  const caller = "migrate";
  assertDatabase(caller, database);
  const names = resolveTables(caller, tables);
  try {
    const run = (statement: string) => database.alone(statement, []);
    const [makeVersion, ...others] = statements(names);
    await run(makeVersion);
    const [row] = await run(readVersion(names));
    if (row !== undefined && isLater(row, names.place)) return;
    for (const statement of others) {
      // oxlint-disable-next-line no-await-in-loop -- each statement of DDL commits by itself
      await run(statement);
    }
  } catch (error) {
    throw explained(caller, names, error);
  }
}

function isLater(row: Row, place: string): boolean {
  const version = integerOf(row["version"]);
  if (isUsable(row)) return version > mysqlSchemaVersion;
  const remedy =
    version > mysqlSchemaVersion ? "upgrade @countersign/store-sql" : "no release made such tables";
  throw new Error(
    `migrate: the tables ${place} have schema version ${version}, this release makes ${mysqlSchemaVersion}; ${remedy}`,
  );
}

function statements(names: TableNames): readonly [string, ...string[]] {
  return [
    versionTable(names),
    ...otherTables(names),
    // Last: each commits by itself, and half of the tables must not pass for all of them.
    `INSERT IGNORE INTO ${names.schema} (id, version, highest_fence) VALUES (1, ${mysqlSchemaVersion}, 0)`,
  ];
}

// Every text is bytes: a collation makes one key of two, by case, by accent, or by the blanks at the end, as utf8mb4_bin does. Every
// instant is microseconds since 1970: a DATETIME has a time zone only in the mind of its reader.
const options = "ENGINE = InnoDB ROW_FORMAT = DYNAMIC";

const keyForm: KeyTableForm = {
  ids: {
    idempotency: [
      ["digest", "digest", "NOT NULL PRIMARY KEY", "SHA-256 of the key"],
      ["name", "text", "NOT NULL"],
    ],
    nonces: [["digest", "digest", "NOT NULL PRIMARY KEY", "SHA-256 of scope and nonce"]],
    answers: [["digest", "digest", "NOT NULL PRIMARY KEY", `SHA-256 ${ofAttempt}`]],
  },
  until: "until_us",
  order: "digest",
  suffixes: { until: "pruning", open: "pages" },
};

function otherTables(names: TableNames): readonly string[] {
  const tables = { ...keyTables(keyForm), ...taskTables };
  return tablesSql<keyof typeof tables>(tables, {
    dialect,
    names,
    create: "CREATE TABLE IF NOT EXISTS",
    createIndex: undefined,
    indexed: (table) => names[table],
    options: () => ` ${options}`,
  }).flatMap((table) => table.statements);
}

function versionTable({ schema }: TableNames): string {
  return `CREATE TABLE IF NOT EXISTS ${schema} (
  id TINYINT PRIMARY KEY CHECK (id = 1),
  version INT NOT NULL,
  -- of a pruned key
  highest_fence BIGINT NOT NULL
) ${options}`;
}
