import { fromMysql2 } from "@countersign/store-sql/mysql2";
import type { Database } from "@countersign/idempotency";
import { type MysqlStoresOptions, type Stores, createStores } from "@countersign/store-sql";
import { afterTest, pause } from "@countersign/test-support/runs/after-test.ts";
import { mysqlEngine, mysqlUrl } from "@countersign/test-support/servers/engines.ts";
import {
  type Pool,
  type PoolConnection,
  type PoolOptions,
  type RowDataPacket,
  createPool,
} from "mysql2/promise";
import { returnTables, takeTables } from "./spare-tables.ts";

/** A table with the column `seq`, of the numbers from 1 to 300. */
export const numbers =
  "(WITH RECURSIVE n AS (SELECT 1 AS seq UNION ALL SELECT seq + 1 FROM n WHERE seq < 300) SELECT seq FROM n) AS numbers";

/** The variable that has the isolation level. */
export const isolation: string = mysqlEngine === "mysql" ? "@@transaction_isolation" : "@@tx_isolation";

/** A pool that ends with the test. */
export function connectPool(config: PoolOptions = {}): Pool {
  const pool = createPool({ uri: mysqlUrl ?? "", connectionLimit: 10, ...config });
  afterTest(() => pool.end());
  return pool;
}

/** Tables of a prefix of their own, and one for payouts, as long as the test. */
export async function createTables(pool: Pool): Promise<string> {
  const table = await takeTables(pool);
  afterTest(() => returnTables(pool, table));
  return table;
}

/** Stores without a timer, closed with the test. */
export function openStores(
  pool: Pool,
  options: Partial<MysqlStoresOptions<PoolConnection>>,
): Stores<PoolConnection> & { database: Database<PoolConnection> } {
  const database = options.database ?? fromMysql2(pool);
  const stores = createStores({ pruneIntervalMs: 0, ...options, database });
  afterTest(() => stores.close());
  return { ...stores, database };
}

/** Stores on new tables, with the pool that they use. */
export async function newStores(
  options: Partial<MysqlStoresOptions<PoolConnection>> = {},
  config?: PoolOptions,
): Promise<ReturnType<typeof openStores> & { pool: Pool; table: string }> {
  const pool = connectPool(config);
  const table = await createTables(pool);
  return { ...openStores(pool, { table, ...options }), pool, table };
}

/** Resolves when so many connections wait in a statement that names the tables. */
export async function untilBlocked(pool: Pool, table: string, count = 1): Promise<void> {
  const waiting = `SELECT COUNT(*) AS waiting FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE '%${table}%'`;
  for (;;) {
    const [[row]] = await pool.query<RowDataPacket[]>(waiting);
    if (Number(row?.["waiting"]) >= count) return;
    // The server takes a new look only when the last one is 100 ms old.
    await pause(150);
  }
}

/** A deadlock that `tx` loses and swallows; `table` has the rows 1 to 300 with a `value`. */
export async function loseDeadlock(tx: PoolConnection, pool: Pool, table: string): Promise<void> {
  const change = (condition: string): string => `UPDATE ${table} SET value = value + 1 WHERE id ${condition}`;
  const rival = await pool.getConnection();
  try {
    await rival.query("START TRANSACTION");
    // The rival has written more: the server rolls the other one back.
    await rival.query(change("> 1"));
    await tx.query(change("= 1"));
    const blocked = rival.query(change("= 1"));
    await untilBlocked(pool, table);
    const error: unknown = await tx.query(change("= 2")).catch((reason: unknown) => reason);
    if (Object(error).errno !== 1213) throw error;
    await blocked;
    await rival.query("ROLLBACK");
  } finally {
    rival.destroy();
  }
}

export async function idsOf(pool: Pool, table: string): Promise<string[]> {
  const [rows] = await pool.query<RowDataPacket[]>(`SELECT id FROM ${table}_payouts ORDER BY id`);
  return rows.map((row) => String(row["id"]));
}
