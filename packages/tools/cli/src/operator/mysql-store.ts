import { fromMysql2 } from "@countersign/databases";
import type { Database } from "@countersign/idempotency";
import {
  createMysqlStores,
  migrateMysql,
  mysqlMigration,
  mysqlSchemaVersion,
} from "@countersign/store-mysql";
import { CommandError, exitCodes, inWordsOfFlags, memberOf, messageOf, type Texts } from "../command-io.ts";
import {
  doubtsOf,
  findingKinds,
  schemaVersionOf,
  type Row,
  type SchemaVersion,
  type StoreCondition,
  versionDoubts,
} from "../doctor/findings.ts";
import { loadDriver } from "../load-package.ts";
import type { Engine, Migration, OperatorStore } from "./store.ts";
import {
  goodbyeMs,
  oneLine,
  openedInTime,
  openTimeoutMs,
  queryTimeoutMs,
  storeFailure,
  withinTime,
  wrongPlace,
} from "./store-failure.ts";
import { refusingUrl, type StoreLocation, type StoreTarget } from "./store-target.ts";

export const mysqlEngine: Engine = { open, inspect };

async function open(target: StoreTarget, retentionMs: number | undefined): Promise<OperatorStore> {
  const { location, table } = target;
  mysqlTables(table);
  const { database, close } = await connect(location, queryTimeoutMs);
  const elsewhere = async (): Promise<string[]> => {
    const rows = await database.alone(placesQuery, [`${table ?? "countersign"}_*`]);
    return rows.map(({ place }) => String(place));
  };
  try {
    const stores = createMysqlStores({ database, table, retentionMs, pruneIntervalMs: 0 });
    await openedInTime(location.shown, stores.ready());
    return {
      ...stores,
      elsewhere,
      async close() {
        stores.close();
        await close();
      },
    };
  } catch (error) {
    const missing = { missing: noSuchTable, flags: "--table", elsewhere };
    const failure = await wrongPlace(target, error, missing);
    await close();
    throw failure;
  }
}

const placesQuery = `SELECT CONCAT(LEFT(table_name, CHAR_LENGTH(table_name) - CHAR_LENGTH('idempotency')), '*') AS place
  FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE '%\\_idempotency'
  HAVING place <> ? ORDER BY place LIMIT 5`;

function inspect({ location, table = "countersign" }: StoreTarget): Promise<StoreCondition> {
  return connected(location, { table }, queryTimeoutMs, async (database) => {
    const sentMs = Date.now();
    const [row] = await database.alone(serverQuery, []);
    const receivedMs = Date.now();
    if (row === undefined) throw new Error("the server said nothing about itself");
    const version = await readVersion(database, table);
    const doubts = [
      ...doubtsOf(mysqlRows, (name) => String(row[name])),
      ...versionDoubts(version, mysqlSchemaVersion, `${table}_*`),
    ];
    if (doubts.every(([id]) => findingKinds[id][0] !== "error")) {
      const refusal = await refusalOf(database, location, table);
      if (refusal !== undefined) doubts.push(["tables-refused", refusal]);
    }
    const usable = doubts.every(([id]) => findingKinds[id][0] !== "error");
    return { doubts, clock: { theirsMs: Number(row["now_ms"]), sentMs, receivedMs }, usable };
  });
}

type Fact = (name: "version" | "flushed" | "has_binlog" | "synced" | "read_only") => string;

const serverQuery = `SELECT VERSION() AS version, @@innodb_flush_log_at_trx_commit AS flushed, @@log_bin AS has_binlog,
  @@sync_binlog AS synced, @@read_only AS read_only, ROUND(UNIX_TIMESTAMP(NOW(3)) * 1000) AS now_ms`;

export const mysqlRows: readonly Row<Fact>[] = [
  [
    "mysql-not-mariadb",
    (fact) => !/-MariaDB/i.test(fact("version")) && `the server is ${fact("version")}, not MariaDB`,
  ],
  [
    "mysql-old",
    (fact) => /^(?:\d|10\.[0-5])\..*-MariaDB/i.test(fact("version")) && "MariaDB is older than 10.6",
  ],
  ["mysql-read-only", (fact) => fact("read_only") !== "0" && "the server is read-only, and takes no claim"],
  [
    "mysql-flush",
    (fact) =>
      !["1", "3"].includes(fact("flushed")) &&
      `innodb_flush_log_at_trx_commit is ${fact("flushed")}: after a crash of the machine, paid keys can be forgotten`,
  ],
  [
    "mysql-binlog",
    (fact) =>
      fact("has_binlog") !== "0" &&
      fact("synced") !== "1" &&
      `sync_binlog is ${fact("synced")}: after a crash of the machine, paid keys can be forgotten`,
  ],
];

/** Why the stores themselves refuse the tables, with the remedy. */
async function refusalOf(
  database: Database<unknown>,
  location: StoreLocation,
  table: string,
): Promise<string | undefined> {
  try {
    await assertReady(database, table);
    return undefined;
  } catch (error) {
    const failure = storeFailure(location, error);
    if (failure.exitCode === exitCodes.unreachable) throw failure;
    return oneLine(location.hide(messageOf(error)));
  }
}

async function assertReady(database: Database<unknown>, table: string | undefined): Promise<void> {
  const stores = createMysqlStores({ database, table, pruneIntervalMs: 0 });
  try {
    await stores.ready();
  } finally {
    stores.close();
  }
}

/** The migration's SQL. Throws a UsageError on a bad name. */
export function mysqlTables(table: string | undefined): string {
  return inWordsOfFlags(() => mysqlMigration({ table }));
}

/** Creates the tables, however long it takes. Throws where the stores refuse server or tables. */
export function migrateTables(location: StoreLocation, { table }: Texts<"table">): Promise<Migration> {
  return connected(location, { table }, 0, async (database) => {
    const before = (await readVersion(database, table))?.version ?? null;
    await migrateMysql(database, { table });
    await assertReady(database, table);
    return { version: (await readVersion(database, table))?.version ?? mysqlSchemaVersion, before };
  });
}

const noSuchTable = 1146;

async function readVersion(
  database: Database<unknown>,
  table: string = "countersign",
): Promise<SchemaVersion | undefined> {
  try {
    // A later version adds a column `oldest`.
    const [row] = await database.alone(`SELECT * FROM \`${table}_schema\` WHERE id = 1`, []);
    // Without a row a migration has ended early.
    return row === undefined ? undefined : schemaVersionOf(row);
  } catch (error) {
    if (memberOf(error, "errno") === noSuchTable) return undefined;
    throw error;
  }
}

/** Checks the names of the tables before it connects. */
async function connected<T>(
  location: StoreLocation,
  { table }: Texts<"table">,
  timeoutMs: number,
  work: (database: Database<unknown>) => Promise<T>,
): Promise<T> {
  mysqlTables(table);
  const { database, close } = await connect(location, timeoutMs);
  try {
    return await work(database);
  } finally {
    await close();
  }
}

/** `timeoutMs` is for each statement; 0 for no limit. */
async function connect(location: StoreLocation, timeoutMs: number) {
  const { createPool } = await loadDriver("mysql2", () => import("mysql2/promise"));
  const config = { uri: location.address, connectTimeout: openTimeoutMs, connectionLimit: 2 };
  const pool = refusingUrl(location, () => createPool(config));
  const connections = new Set<{ destroy(): void }>();
  pool.on("connection", (connection) => connections.add(connection));
  const destroy = (): void => {
    for (const connection of connections) connection.destroy();
  };
  // The driver's own limit leaves the connection in use, and the next statement waits behind it.
  const inTime = async <T>(answer: Promise<T>): Promise<T> => {
    if (timeoutMs === 0) return await answer;
    return await withinTime(timeoutMs, answer, (why) => {
      destroy();
      return new CommandError(`${location.shown} cannot be reached: ${why}`, exitCodes.unreachable);
    });
  };
  const database = fromMysql2({
    query: (text, values) => inTime(pool.query(text, values)),
    async getConnection() {
      const connection = await inTime(pool.getConnection());
      return {
        query: (text, values) => inTime(connection.query(text, values)),
        release: () => connection.release(),
        destroy: () => connection.destroy(),
      };
    },
  });
  return {
    database,
    /** Gives a hanging server a moment to say goodbye. */
    close: async (): Promise<void> => {
      await withinTime(goodbyeMs, pool.end(), (why) => new Error(why)).catch(() => {});
      destroy();
    },
  };
}
