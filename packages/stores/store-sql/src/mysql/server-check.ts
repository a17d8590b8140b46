import { publishNotice } from "@countersign/core/internal";
import type { Row } from "@countersign/idempotency/store";
import { integerOf, isTrue, singleRow } from "../sql/values.ts";
import { isUsable, mysqlSchemaVersion, readVersion } from "./migration.ts";
import { type ResolvedMysqlOptions, factoryName } from "./options.ts";
import type { TableNames } from "./table-names.ts";
import type { Statement } from "./statement-parts.ts";

/** Column by table. */
const primaryKeys: Readonly<Record<string, string>> = {
  idempotency: "digest",
  nonces: "digest",
  schema: "id",
  answers: "digest",
  lanes: "digest",
  tasks: "digest",
  queues: "digest",
  newest: "digest",
};

export interface Server {
  readonly engine: "mariadb" | "mysql";
  /** The variable that says whether the session's transactions are read-only. */
  readonly accessMode: "tx_read_only" | "transaction_read_only";
  /** The variable that bounds how long an open transaction may stand idle. MySQL has one for any session alone. */
  readonly idleBound: "idle_write_transaction_timeout" | "wait_timeout";
}

const oldest = { mariadb: [10, 6], mysql: [8, 0] } as const;
const engineNames = { mariadb: "MariaDB", mysql: "MySQL" } as const;

export const readServer: Statement = ["SELECT VERSION() AS version", []];

/** Throws, with the remedy, unless server and tables are as the stores need them. Publishes `mysql-not-durable`. */
export async function checkServer<Tx>(options: ResolvedMysqlOptions<Tx>): Promise<Server> {
  const { database, names } = options;
  const server = serverOf(singleRow(await database.alone(...readServer)));
  assertSettings(singleRow(await database.alone(readSettings, [])));
  // Before the tables: a migration writes it last.
  const [row] = await database.alone(readVersion(names), []);
  const missing = missingOf(
    await database.alone(readTables(names.prefix, Object.keys(primaryKeys)), []),
    names,
  );
  assertSchemaVersion(row, names);
  if (missing.length === 0 || integerOf(row?.["version"]) !== mysqlSchemaVersion) return server;
  throw new Error(`${factoryName}: missing tables: ${missing.join(", ")}; run ${names.migrate}`);
}

/** Throws on a server that is neither MariaDB nor MySQL, or too old. */
export function serverOf({ version: told }: Row): Server {
  const version = String(told);
  const found = /^(?<major>\d+)\.(?<minor>\d+)\.\d+(?<rest>.*)$/.exec(version)?.groups;
  const rest = found?.["rest"] ?? "";
  const engine = /-MariaDB/i.test(rest) ? "mariadb" : "mysql";
  // Others that speak MySQL's protocol name themselves there. What they promise of transactions is another thing.
  if (
    found === undefined ||
    (engine === "mysql" && /TiDB|Vitess|PlanetScale|OceanBase|SingleStore/i.test(rest))
  ) {
    throw new Error(`${factoryName}: the server is ${version}, neither MySQL nor MariaDB`);
  }
  const [major, minor] = [Number(found["major"]), Number(found["minor"])];
  const isAtLeast = (least: readonly [number, number]): boolean =>
    major > least[0] || (major === least[0] && minor >= least[1]);
  const [oldestMajor, oldestMinor] = oldest[engine];
  if (!isAtLeast(oldest[engine])) {
    throw new Error(
      `${factoryName}: ${engineNames[engine]} ${major}.${minor} is too old, ${oldestMajor}.${oldestMinor} or newer is needed`,
    );
  }
  const isRenamed = engine === "mysql" || isAtLeast([11, 1]);
  return {
    engine,
    accessMode: isRenamed ? "transaction_read_only" : "tx_read_only",
    idleBound: engine === "mariadb" ? "idle_write_transaction_timeout" : "wait_timeout",
  };
}

const readSettings =
  "SELECT @@innodb_flush_log_at_trx_commit AS flushed, @@log_bin AS has_binlog, @@sync_binlog AS synced, @@read_only AS read_only";

function assertSettings(row: Row): void {
  if (Number(row["read_only"]) !== 0) {
    throw new Error(`${factoryName}: the server is read-only; connect to the primary server`);
  }
  const isFlushed = [1, 3].includes(integerOf(row["flushed"]));
  // With a binary log a crash recovers what that has: a commit that it has not is rolled back.
  const isSynced = !isTrue(row["has_binlog"]) || integerOf(row["synced"]) === 1;
  const faults = [
    ...(isFlushed ? [] : ["innodb_flush_log_at_trx_commit is not 1"]),
    ...(isSynced ? [] : ["sync_binlog is not 1"]),
  ];
  if (faults.length === 0) return;
  const message = `${faults.join(" and ")}: after a crash of the server's machine, paid keys can be forgotten`;
  if (!isFlushed && process.env["NODE_ENV"] === "production") {
    throw new Error(`${factoryName}: ${message}; run the server with innodb_flush_log_at_trx_commit = 1`);
  }
  publishNotice({ guard: factoryName, code: "mysql-not-durable", message });
}

// The names are a prefix that was checked, and ours.
function readTables(prefix: string, suffixes: readonly string[]): string {
  const names = suffixes.map((suffix) => `SELECT '${prefix}_${suffix}' AS name`).join(" UNION ALL ");
  return `SELECT made.name, t.TABLE_NAME AS found, t.ENGINE AS engine, (SELECT GROUP_CONCAT(s.COLUMN_NAME) FROM information_schema.STATISTICS AS s
  WHERE s.TABLE_SCHEMA = t.TABLE_SCHEMA AND s.TABLE_NAME = t.TABLE_NAME AND s.INDEX_NAME = 'PRIMARY') AS primary_key
FROM (${names}) AS made LEFT JOIN information_schema.TABLES AS t ON t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME = made.name`;
}

/** The tables that are missing. Throws where one that is there cannot be used. */
function missingOf(rows: readonly Row[], { prefix, place }: TableNames): readonly string[] {
  const missing = rows.filter(({ found }) => found === null);
  for (const row of rows) {
    if (missing.includes(row)) continue;
    if (String(row["engine"]).toLowerCase() !== "innodb") {
      throw new Error(
        `${factoryName}: tables ${place} are not InnoDB, and know no transactions; run ALTER TABLE … ENGINE = InnoDB`,
      );
    }
    const name = String(row["name"]);
    const column = primaryKeys[name.slice(prefix.length + 1).toLowerCase()];
    if (row["primary_key"] === column) continue;
    // It would give a row, and so the key, to each of two claims.
    throw new Error(
      `${factoryName}: the table ${name} has lost its primary key; run: ALTER TABLE \`${name}\` ADD PRIMARY KEY (${column})`,
    );
  }
  return missing.map(({ name }) => String(name));
}

function assertSchemaVersion(row: Row | undefined, { place, migrate }: TableNames): void {
  if (isUsable(row)) return;
  const version = row === undefined ? 0 : integerOf(row["version"]);
  const remedy = version < mysqlSchemaVersion ? `run ${migrate}` : "upgrade @countersign/store-sql";
  throw new Error(
    `${factoryName}: the tables ${place} have schema version ${version}, this release needs ${mysqlSchemaVersion}; ${remedy}`,
  );
}
