import { fromMysql2 } from "@countersign/store-sql/mysql2";
import type { Database } from "@countersign/idempotency";
import { createStores, migrate, mysqlMigration, mysqlSchemaVersion } from "@countersign/store-sql";
import { CommandError, exitCodes, inWordsOfFlags } from "../command-io.ts";
import type { Row } from "../doctor/findings.ts";
import { loadDriver } from "../load-package.ts";
import { sqlEngine, type Fact } from "./sql-engine.ts";
import { goodbyeMs, openTimeoutMs, withinTime } from "./store-failure.ts";
import { refusingUrl, type StoreLocation } from "./store-target.ts";

const serverQuery = `SELECT VERSION() AS version, @@innodb_flush_log_at_trx_commit AS flushed, @@log_bin AS has_binlog,
  @@sync_binlog AS synced, @@read_only AS read_only, ROUND(UNIX_TIMESTAMP(NOW(3)) * 1000) AS now_ms`;

export const mysqlRows: readonly Row<Fact>[] = [
  [
    "mysql-other",
    (fact) =>
      /TiDB|Vitess|PlanetScale|OceanBase|SingleStore/i.test(fact("version")) &&
      `the server is ${fact("version")}, neither MySQL nor MariaDB`,
  ],
  [
    "mysql-old",
    (fact) =>
      /MariaDB/i.test(fact("version"))
        ? /^(?:\d|10\.[0-5])\./.test(fact("version")) && "MariaDB is older than 10.6"
        : /^[0-7]\./.test(fact("version")) && "MySQL is older than 8.0",
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

export const mysqlEngine = sqlEngine<Database<unknown>>({
  schemaVersion: mysqlSchemaVersion,
  tables: ({ table }) => inWordsOfFlags(() => mysqlMigration({ table })),
  migrate: (database, { table }) => migrate(database, { table }),
  connect,
  stores: (database, { schema: _schema, ...options }) => createStores({ database, ...options }),
  versionTable: ({ table }) => `\`${table}_schema\``,
  placeOf: ({ table }) => `${table}_*`,
  placesQuery: `SELECT CONCAT(LEFT(table_name, CHAR_LENGTH(table_name) - CHAR_LENGTH('idempotency')), '*') AS place
  FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE '%\\_idempotency'
  HAVING place <> ? ORDER BY place LIMIT 5`,
  madeQuery: ({ table }) => [
    "SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND LOCATE(?, TABLE_NAME) = 1 ORDER BY 1",
    [`${table}_`],
  ],
  noSuchTable: 1146,
  serverQuery: () => [serverQuery, []],
  rows: mysqlRows,
});

async function connect(location: StoreLocation, timeoutMs: number) {
  const { createPool } = await loadDriver(["mysql2"], () => import("mysql2/promise"));
  const config = { uri: location.address, connectTimeout: openTimeoutMs, connectionLimit: 2 };
  const pool = refusingUrl(location, () => createPool(config));
  const sockets = new Set<{ destroy(): unknown }>();
  // No type of the driver has the socket.
  pool.on("connection", (connection: object) => sockets.add(Reflect.get(connection, "stream")));
  // The driver's own destroy() ends the writing half alone. A MySQL that waits for a lock reads no end, and the command would not end either.
  const destroy = (): void => {
    for (const socket of sockets) socket.destroy();
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
    connection: database,
    query: (text: string, values: readonly string[]) => database.alone(text, values),
    async close(): Promise<void> {
      await withinTime(goodbyeMs, pool.end(), (why) => new Error(why)).catch(() => {});
      destroy();
    },
  };
}
