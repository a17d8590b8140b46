// Both modes on one table, on each engine with transactions.
import { setTimeout as sleep } from "node:timers/promises";
import { fromMysql2 } from "@countersign/store-sql/mysql2";
import { fromPg } from "@countersign/store-sql/pg";
import { createStores, migrate } from "@countersign/store-sql";
import { describe, expect, jest, test } from "@jest/globals";
import { createPool, type PoolConnection, type RowDataPacket } from "mysql2/promise";
import { Pool, type PoolClient } from "pg";
import {
  type Connection,
  connect,
  temporaryFile,
} from "../../packages/stores/store-sql/test/sqlite/connections.ts";
import { afterTest } from "../support/runs/after-test.ts";
import {
  describeOnMysql,
  describeOnPostgres,
  isolatedName,
  mysqlUrl,
  postgresUrl,
} from "../support/servers/engines.ts";
import { type Ground, keepsItsWord, timeoutMs } from "./both-modes.ts";

jest.setTimeout(timeoutMs);

const usual = [
  "paid",
  "refused",
  "done",
  "held",
  "in-flight",
  "nonce-seen",
  "paid under a lease",
  "heartbeat: lost",
  "hold: lost",
  "release: ok",
  "resolved released",
  "reopen: ok",
  "reopen: not-decided",
  "paid among others",
  "refused among others",
  "given back",
  "listed held",
  "listed done",
];

describeOnPostgres("createStores", () => {
  test("both modes pay each key once", async () => {
    const schema = isolatedName("modes");
    const admin = new Pool({ connectionString: postgresUrl, max: 8 });
    await admin.query(`CREATE SCHEMA "${schema}"`);
    afterTest(async () => {
      await admin.query(`DROP SCHEMA "${schema}" CASCADE`);
      await admin.end();
    });
    await migrate(admin, { schema });
    await admin.query(`CREATE TABLE "${schema}".payments (key text NOT NULL)`);
    const open = () => {
      const pool = new Pool({ connectionString: postgresUrl, max: 10, application_name: schema });
      pool.on("error", () => {});
      const stores = createStores({ database: fromPg(pool), schema, pruneIntervalMs: 0 });
      afterTest(() => pool.end());
      return { pool, stores };
    };
    const processes = [open(), open()] as const;
    const insert = (tx: Pick<PoolClient, "query">, key: string): Promise<unknown> =>
      tx.query(`INSERT INTO "${schema}".payments VALUES ($1)`, [key]);
    const ground: Ground<PoolClient> = {
      stores: [processes[0].stores, processes[1].stores],
      insert,
      payOutside: (by, key) =>
        processes[by].pool.query(`INSERT INTO "${schema}".payments VALUES ($1)`, [key]),
      async paid(key) {
        const { rows } = await admin.query(`SELECT 1 FROM "${schema}".payments WHERE key = $1`, [key]);
        return rows.length;
      },
      cut: () =>
        admin.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 ORDER BY random() LIMIT 1",
          [schema],
        ),
    };
    expect(await keepsItsWord(ground, ["failed: transaction-unavailable", ...usual])).toEqual([]);
  });
});

describeOnMysql("createStores", () => {
  test("both modes pay each key once", async () => {
    const name = isolatedName("modes");
    const admin = createPool({ uri: mysqlUrl ?? "", connectionLimit: 8 });
    await admin.query(`CREATE DATABASE ${name}`);
    afterTest(async () => {
      await admin.query(`DROP DATABASE ${name}`);
      await admin.end();
    });
    const open = () => {
      const pool = createPool({ uri: mysqlUrl ?? "", database: name, connectionLimit: 10 });
      const database = fromMysql2(pool);
      afterTest(() => pool.end());
      return { pool, database, stores: createStores({ database, pruneIntervalMs: 0 }) };
    };
    const processes = [open(), open()] as const;
    await migrate(processes[0].database);
    await admin.query(`CREATE TABLE ${name}.payments (\`key\` VARCHAR(60) NOT NULL)`);
    const insert = (tx: Pick<PoolConnection, "query">, key: string): Promise<unknown> =>
      tx.query(`INSERT INTO ${name}.payments VALUES (?)`, [key]);
    const ground: Ground<PoolConnection> = {
      stores: [processes[0].stores, processes[1].stores],
      insert,
      payOutside: (by, key) => processes[by].pool.query(`INSERT INTO ${name}.payments VALUES (?)`, [key]),
      async paid(key) {
        const [rows] = await admin.query<RowDataPacket[]>(
          `SELECT 1 FROM ${name}.payments WHERE \`key\` = ?`,
          [key],
        );
        return rows.length;
      },
      async cut() {
        const [[line]] = await admin.query<RowDataPacket[]>(
          "SELECT id FROM information_schema.PROCESSLIST WHERE db = ? ORDER BY RAND() LIMIT 1",
          [name],
        );
        return admin.query(`KILL ${line?.["id"]}`);
      },
    };
    expect(await keepsItsWord(ground, ["failed: transaction-unavailable", ...usual])).toEqual([]);
  });
});

describe("createStores", () => {
  test("both modes pay each key once", async () => {
    const file = temporaryFile();
    const admin = connect(file);
    const open = () => {
      const database = connect(file);
      const stores = createStores({ database, pruneIntervalMs: 0 });
      // All of them are in this process: who waits in SQLite keeps the other one from going on.
      database.exec("PRAGMA busy_timeout = 0");
      afterTest(() => stores.close());
      return { database, stores };
    };
    const processes = [open(), open()] as const;
    admin.exec("CREATE TABLE payments (key TEXT NOT NULL)");
    const insert = (tx: Connection, key: string): unknown =>
      tx.prepare("INSERT INTO payments VALUES (?)").run(key);
    const ground: Ground<Connection> = {
      stores: [processes[0].stores, processes[1].stores],
      insert,
      async payOutside(by, key) {
        insert(processes[by].database, key);
      },
      paid: async (key) => admin.prepare("SELECT 1 FROM payments WHERE key = ?").all(key).length,
      // Of a process that dies with the write lock.
      async cut() {
        const dying = connect(file);
        dying.exec(
          "BEGIN IMMEDIATE; UPDATE countersign_idempotency SET state = 'free'; DELETE FROM payments",
        );
        await sleep(20);
        dying.close();
      },
    };
    expect(await keepsItsWord(ground, ["failed: SQLITE_BUSY", ...usual])).toEqual([]);
  });
});
