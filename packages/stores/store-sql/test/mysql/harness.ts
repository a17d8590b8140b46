import type { StoreHarnesses } from "@countersign/store-contract";
import { fromMysql2 } from "@countersign/store-sql/mysql2";
import type { TransactionAnswerStore } from "@countersign/idempotency";
import { type MysqlStoresOptions, type Stores, createAnswers, createStores } from "@countersign/store-sql";
import { type Pool, type PoolConnection, type RowDataPacket, createPool } from "mysql2/promise";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { mysqlUrl } from "@countersign/test-support/servers/engines.ts";
import type { MariadbServer } from "@countersign/test-support/servers/mariadb-server.mjs";
import { loseDeadlock, numbers } from "./connections.ts";
import { pastGate } from "./transactions.ts";
import { dropping, makeTables, returnTables, suffixes, takeTables } from "./spare-tables.ts";

interface Engine {
  readonly hasClock?: boolean | undefined;
  /** A server that a case may stop. */
  readonly server?: MariadbServer | undefined;
}

type Options = MysqlStoresOptions<PoolConnection>;

/** Stores on tables of their own, which go with them. */
async function makeStores<Made extends { close(): unknown }>(
  { hasClock = false, server }: Engine,
  create: (options: Options) => Made,
) {
  const uri = server?.url ?? mysqlUrl ?? "";
  const pools: Pool[] = [];
  const made: Made[] = [];
  const clock = hasClock ? testClock() : undefined;
  const connect = (): Pool => {
    const pool = createPool({ uri, connectionLimit: 10 });
    pools.push(pool);
    return pool;
  };
  const another = (): Made => {
    const stores = create({ database: fromMysql2(connect()), table, now: clock?.now, pruneIntervalMs: 0 });
    made.push(stores);
    return stores;
  };
  const payments = connect();
  const database = fromMysql2(payments);
  const isShared = uri === mysqlUrl;
  const table = isShared ? await takeTables(payments) : await makeTables(payments);
  return {
    stores: another(),
    another,
    database,
    payments,
    table,
    harness: {
      fill: () => refuseInserts(payments, table),
      ...(clock === undefined ? {} : { advance: clock.advance }),
      ...(server === undefined
        ? {}
        : { engine: { stop: () => server.kill(), start: () => server.start(), durable: true } }),
      async close() {
        for (const stores of made) await stores.close();
        if (isShared) await returnTables(payments, table);
        else await payments.query(dropping(table));
        await Promise.all(pools.map((pool) => pool.end()));
      },
    },
  };
}

/** What a server whose disk is full answers to every row that needs room. */
async function refuseInserts(pool: Pool, table: string): Promise<void> {
  for (const suffix of suffixes) {
    await pool.query(
      `CREATE TRIGGER ${table}_${suffix}_full AFTER INSERT ON ${table}_${suffix} FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'The table is full'`,
    );
  }
}

export async function idempotencyHarness(engine: Engine): Promise<StoreHarnesses["idempotency"]> {
  const { stores, another, harness } = await makeStores<Stores<PoolConnection>>(engine, createStores);
  return { ...harness, store: stores.idempotency, another: () => another().idempotency };
}

export async function paymentHarness(
  engine: Engine,
): Promise<StoreHarnesses<PoolConnection>["transactions"] & StoreHarnesses<PoolConnection>["work"]> {
  const made = await makeStores<Stores<PoolConnection>>(engine, createStores);
  const { stores, another, payments, table, harness } = made;
  const rival = `${table}_rival`;
  return {
    ...harness,
    store: stores,
    another,
    write: (tx, id) => tx.query(`INSERT INTO ${table}_payouts VALUES (?)`, [Buffer.from(id)]),
    async written() {
      const [rows] = await payments.query<RowDataPacket[]>(`SELECT id FROM ${table}_payouts`);
      return rows.map((row) => String(row["id"]));
    },
    end: (tx, statement) => pastGate(stores.transactions, tx, statement),
    async swallow(tx) {
      await payments.query(
        `CREATE TABLE IF NOT EXISTS ${rival} (id INT PRIMARY KEY, value INT) ENGINE = InnoDB`,
      );
      await payments.query(`REPLACE INTO ${rival} SELECT seq, 0 FROM ${numbers}`);
      await loseDeadlock(tx, payments, rival);
    },
    async close() {
      await payments.query(`DROP TABLE IF EXISTS ${rival}`);
      await harness.close();
    },
  };
}

export async function nonceHarness(engine: Engine): Promise<StoreHarnesses["nonces"]> {
  const { stores, another, harness } = await makeStores<Stores<PoolConnection>>(engine, createStores);
  return { ...harness, store: stores.nonces, another: () => another().nonces };
}

export async function answerHarness(engine: Engine): Promise<StoreHarnesses<PoolConnection>["answers"]> {
  const { stores, another, database, harness } = await makeStores<TransactionAnswerStore<PoolConnection>>(
    engine,
    createAnswers,
  );
  return {
    ...harness,
    store: stores,
    another,
    transaction: (work) => database.run(async (tx) => work(tx)),
  };
}
