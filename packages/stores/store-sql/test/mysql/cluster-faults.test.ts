import { fromMysql2 } from "@countersign/store-sql/mysql2";
import { createStores } from "@countersign/store-sql";
import { describeOnMysql, mysqlUrl } from "@countersign/test-support/servers/engines.ts";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Pool, type PoolConnection, type RowDataPacket, createPool } from "mysql2/promise";
import { describeFaults, faultyDatabase, Faults, type FaultRow } from "../libraries/table/describe-faults.ts";
import { returnTables, takeTables } from "./spare-tables.ts";

type Fault = FaultRow[2];

/** As the server says it. */
interface Said {
  readonly errno: number;
  readonly sqlState: string;
  readonly message: string;
  readonly is: Fault;
}

const conflict = "conflict";
const unavailable = "unavailable";
const failed = (what: string) => `Got error ${what} during COMMIT`;

// What nodes of Galera and members of groups have said, and what their manuals have beside it.
const said: readonly Said[] = [
  { errno: 1213, sqlState: "40001", message: "Deadlock found when trying to get lock", is: conflict },
  { errno: 1020, sqlState: "HY000", message: "Record has changed since last read in table", is: conflict },
  { errno: 3101, sqlState: "40000", message: "Plugin instructed the server to rollback", is: conflict },
  {
    errno: 1180,
    sqlState: "HY000",
    message: failed("149 - 'Lock deadlock; Retry transaction'"),
    is: conflict,
  },
  {
    errno: 1180,
    sqlState: "HY000",
    message: failed("5 - 'Transport endpoint is not connected. Not connected to Primary Component'"),
    is: unavailable,
  },
  { errno: 1047, sqlState: "08S01", message: "WSREP has not yet prepared node", is: unavailable },
  { errno: 1053, sqlState: "08S01", message: "Server shutdown in progress", is: unavailable },
  { errno: 1290, sqlState: "HY000", message: "running with the --super-read-only option", is: unavailable },
  { errno: 1836, sqlState: "HY000", message: "Running in read-only mode", is: unavailable },
  { errno: 3032, sqlState: "HY000", message: "The server is currently in offline mode", is: unavailable },
  { errno: 3100, sqlState: "HY000", message: "Error on observer before_commit", is: unavailable },
  { errno: 3168, sqlState: "HY000", message: "Server isn't available", is: unavailable },
  { errno: 3169, sqlState: "HY000", message: "Session was killed", is: unavailable },
  { errno: 3796, sqlState: "HY000", message: "consistency cannot be used", is: unavailable },
  { errno: 3797, sqlState: "HY000", message: "wait for the members to commit failed", is: unavailable },
  { errno: 3798, sqlState: "HY000", message: "wait for the preceding failed", is: unavailable },
  { errno: 3799, sqlState: "HY000", message: "Error on sending the transaction", is: unavailable },
  { errno: 4031, sqlState: "HY000", message: "disconnected because of inactivity", is: unavailable },
];
// In place of the transaction's end it says that the handler has ended it.
const readOnlyTransaction: Said = {
  errno: 1792,
  sqlState: "25006",
  message: "Cannot execute statement in a READ ONLY transaction",
  is: unavailable,
};
const titleOf = ({ errno, message }: Said) => `${errno} (${message})`;

const lost: readonly [name: string, error: object][] = [
  ["ETIMEDOUT", { code: "ETIMEDOUT", errno: -110, syscall: "connect", fatal: true }],
  ["EPIPE", { code: "EPIPE", message: "This socket has been ended by the other party" }],
  ["ECONNRESET", { code: "ECONNRESET", errno: -104, syscall: "read", fatal: true }],
  ["PROTOCOL_CONNECTION_LOST", { code: "PROTOCOL_CONNECTION_LOST", fatal: true }],
];

function mysql2Error({ errno, sqlState, message }: Said): Error {
  const own = { code: "ER_OF_A_CLUSTER", errno, sqlState, sqlMessage: message };
  return Object.assign(new Error(message), own);
}

/** How each library shows what the server has said. */
const libraries: readonly [name: string, show: (one: Said) => unknown][] = [
  ["mysql2", mysql2Error],
  [
    "the MariaDB connector",
    (one) =>
      Object.assign(new Error(`(conn:7, no: ${one.errno}, SQLState: ${one.sqlState}) ${one.message}`), {
        errno: one.errno,
        sqlState: one.sqlState,
        sqlMessage: one.message,
        fatal: false,
      }),
  ],
  [
    "Knex",
    (one) => Object.assign(mysql2Error(one), { message: `insert into \`t\` values (?) - ${one.message}` }),
  ],
  ["Drizzle", (one) => new Error("Failed query: commit", { cause: mysql2Error(one) })],
  [
    "TypeORM",
    (one) => Object.assign(new Error(one.message), { driverError: mysql2Error(one), errno: one.errno }),
  ],
  [
    "Sequelize",
    (one) =>
      Object.assign(new Error(one.message), {
        parent: mysql2Error(one),
        original: mysql2Error(one),
        sql: "",
      }),
  ],
  ["MikroORM", (one) => Object.assign(mysql2Error(one), { previous: mysql2Error(one) })],
  [
    "Prisma",
    (one) =>
      Object.assign(new Error("Raw query failed"), {
        code: "P2010",
        meta: { code: String(one.errno), message: one.message },
      }),
  ],
  [
    "a driver adapter of Prisma",
    (one) =>
      Object.assign(new Error("Raw query failed"), {
        code: "P2010",
        meta: { driverAdapterError: { cause: { kind: "mysql", code: one.errno, message: one.message } } },
      }),
  ],
];

describe("faultOf", () => {
  const pool = createPool("mysql://root@127.0.0.1:1/test");
  const { transactions, close } = createStores({ database: fromMysql2(pool), pruneIntervalMs: 0 });
  afterAll(async () => {
    close();
    await pool.end();
  });

  describe.each(libraries)("by %s", (_library, show) => {
    test.each([...said, readOnlyTransaction].map((one) => [titleOf(one), one] as const))(
      "tells %s",
      (_title, one) => {
        expect(transactions.faultOf(show(one))).toBe(one.is);
        expect(transactions.faultOf(new Error("with its remedy", { cause: show(one) }))).toBe(one.is);
      },
    );
  });

  test.each(lost)("tells %s", (_name, error) => {
    expect(transactions.faultOf(Object.assign(new Error("lost"), error))).toBe("unavailable");
  });
});

describeOnMysql("on the server", () => {
  const faults = new Faults();
  const rows: readonly FaultRow[] = [
    ...said.map((one): FaultRow => [titleOf(one), mysql2Error(one), one.is]),
    ...lost.map(([name, error]): FaultRow => [name, Object.assign(new Error(name), error), "unavailable"]),
  ];
  let pool: Pool;
  let table: string;
  let end = async () => {};

  beforeAll(async () => {
    pool = createPool({ uri: mysqlUrl ?? "", connectionLimit: 10 });
    table = await takeTables(pool);
    end = async () => {
      await returnTables(pool, table);
      await pool.end();
    };
  });
  afterAll(() => end());

  describeFaults<PoolConnection>("a fault of a cluster", faults, rows, async () => {
    // The store commits by what gives the session back.
    const database = faultyDatabase(
      fromMysql2(pool),
      faults,
      (text) => /SESSION autocommit = (?:IF\(|@)/.test(text) && !/ROLLBACK/.test(text),
    );
    const { close, ...stores } = createStores({ database, table, pruneIntervalMs: 0 });
    const before = end;
    end = async () => {
      close();
      await before();
    };
    return {
      ...stores,
      handler: (tx, key) => tx.query(`INSERT INTO ${table}_payouts VALUES (?)`, [key]),
      async countOf(key) {
        const text = `SELECT COUNT(*) AS count FROM ${table}_payouts WHERE id = ?`;
        const [[row]] = await pool.query<RowDataPacket[]>(text, [key]);
        return Number(row?.["count"]);
      },
    };
  });
});
