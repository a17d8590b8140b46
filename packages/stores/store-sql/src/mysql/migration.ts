import type { Database } from "@countersign/idempotency";
import type { Row } from "@countersign/idempotency/store";
import { taskTables } from "../work/task-table.ts";
import { integerOf } from "../sql/values.ts";
import { explained } from "./errors.ts";
import { assertDatabase } from "./options.ts";
import { type MysqlTables, type TableNames, resolveTables } from "./table-names.ts";
import { taskDialect } from "./task-dialect.ts";

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
    idempotencyTable(names),
    nonceTable(names),
    answersTable(names),
    ...workTables(names),
    // Last: each commits by itself, and half of the tables must not pass for all of them.
    `INSERT IGNORE INTO ${names.schema} (id, version, highest_fence) VALUES (1, ${mysqlSchemaVersion}, 0)`,
  ];
}

// Every text is bytes: a collation makes one key of two, by case, by accent, or by the blanks at the end, as utf8mb4_bin does. Every
// instant is microseconds since 1970: a DATETIME has a time zone only in the mind of its reader.
const options = "ENGINE = InnoDB ROW_FORMAT = DYNAMIC";

function workTables(names: TableNames): readonly string[] {
  return taskTables({
    dialect: taskDialect,
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

function idempotencyTable({ idempotency }: TableNames): string {
  return `CREATE TABLE IF NOT EXISTS ${idempotency} (
  -- SHA-256 of the key
  digest BINARY(32) PRIMARY KEY,
  name VARBINARY(3072) NOT NULL,
  -- free: absent to every reader, kept for a day for its fence, or as long as a done one for what an operator has decided
  state ENUM('free', 'running', 'held', 'done') NOT NULL,
  token VARBINARY(3072) NOT NULL,
  fence BIGINT NOT NULL,
  fingerprint VARBINARY(3072) NOT NULL,
  reason VARBINARY(3072) NOT NULL,
  -- what may follow once the lease has ended: rerun, if the next claim says so too
  recovery ENUM('hold', 'rerun') NOT NULL,
  -- end of the lease (running, held) or of what is remembered (done, free)
  until_us BIGINT NOT NULL,
  -- raised by every write
  version BIGINT NOT NULL,
  -- an operator's last decision, in JSON: the outcome, about which fence, when, by whom, why, and for what the key was held
  decision BLOB,
  KEY pages (state, digest),
  KEY pruning (state, until_us)
) ${options}`;
}

function nonceTable({ nonces }: TableNames): string {
  return `CREATE TABLE IF NOT EXISTS ${nonces} (
  -- SHA-256 of scope and nonce
  digest BINARY(32) PRIMARY KEY,
  token VARBINARY(3072) NOT NULL,
  until_us BIGINT NOT NULL,
  KEY pruning (until_us)
) ${options}`;
}

function answersTable({ answers }: TableNames): string {
  return `CREATE TABLE IF NOT EXISTS ${answers} (
  -- SHA-256 of the attempt's token, not of the key: what never ended its key is never found
  digest BINARY(32) PRIMARY KEY,
  answer LONGBLOB NOT NULL,
  until_us BIGINT NOT NULL,
  KEY pruning (until_us)
) ${options}`;
}
