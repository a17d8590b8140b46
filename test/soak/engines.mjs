// The engines of the soak: what a payer process does on one, and what the program that judges it sees.
import { randomBytes } from "node:crypto";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createSqliteStores, withImmediateTransaction } from "@countersign/store-sqlite";
import Database from "libsql";

export const payoutPath = "/api/v1/transaction";
/** A slow handler, before and after its payment: this is where most kills and stops find it. */
export const longestHandlingMs = 40;
// A synchronous one, which keeps every other payout waiting.
const longestStandingMs = 4;

/**
 * An engine has `prepare({ folder, url })`, which returns the location of an empty store, as JSON; `open(location)` for a
 * payer; `inspect(location)` for the judge. `pay(req, payout)` records a payout and, where the engine can, completes its
 * key in the same transaction. Where it can, `transactions` has the same for a handler that gets the transaction. Only where it cannot does the table of payouts refuse a second row: elsewhere it would be seen.
 */
export const engines = { sqlite: sqlite(), redis: redis(), postgres: postgres(), mariadb: mariadb() };

function sqlite() {
  return {
    needs: undefined,
    async prepare({ folder }) {
      const file = path.join(folder, "platform.db");
      createPayouts(file, "idempotency_key TEXT NOT NULL");
      return { file };
    },
    async open({ file }) {
      const database = new Database(file);
      const stores = createSqliteStores({ database });
      const { idempotency, nonces } = stores;
      const insert = database.prepare("INSERT INTO payouts (idempotency_key) VALUES (?)");
      const pay = (req, { idempotencyKey }) =>
        withImmediateTransaction(database, (transaction) => {
          insert.run(idempotencyKey);
          return req.idempotency.completeIn(transaction);
        });
      const transactions = {
        stores,
        pay({ idempotencyKey }) {
          stand(Math.random() * longestStandingMs);
          insert.run(idempotencyKey);
          stand(Math.random() * longestStandingMs);
        },
      };
      return { idempotency, nonces, pay, transactions };
    },
    inspect: inspectFile,
  };
}

// Redis knows no transaction with the payouts: they are in a database of their own, whose UNIQUE column makes the rerun of an
// attempt that died between its payout and its record harmless.
function redis() {
  return {
    needs: "REDIS_URL",
    async prepare({ folder, url }) {
      const file = path.join(folder, "payouts.db");
      createPayouts(file, "idempotency_key TEXT NOT NULL UNIQUE");
      return { file, url, prefix: isolatedName() };
    },
    async open({ file, url, prefix }) {
      const { createRedisStores } = await import("@countersign/store-redis");
      const client = await connectRedis(url);
      const sendCommand = (args) => client.sendCommand([...args]);
      const { idempotency, nonces } = createRedisStores({ sendCommand, prefix });
      const database = openPayouts(file);
      const insert = database.prepare(
        "INSERT INTO payouts (idempotency_key) VALUES (?) ON CONFLICT DO NOTHING",
      );
      const pay = (_req, { idempotencyKey }) =>
        void withImmediateTransaction(database, () => insert.run(idempotencyKey).changes);
      return { idempotency, nonces, pay };
    },
    inspect({ file, url, prefix }) {
      const payouts = inspectFile({ file });
      return {
        ...payouts,
        async close() {
          await payouts.close();
          await removeKeys(url, prefix);
        },
      };
    },
  };
}

function postgres() {
  return {
    needs: "DATABASE_URL",
    async prepare({ url }) {
      const schema = isolatedName();
      const { migratePostgres } = await import("@countersign/store-postgres");
      const pool = await newPool(url, 1);
      await pool.query(`CREATE SCHEMA "${schema}"`);
      await migratePostgres(pool, { schema });
      await pool.query(`CREATE TABLE "${schema}".payouts (idempotency_key text NOT NULL)`);
      await pool.query(`CREATE INDEX ON "${schema}".payouts (idempotency_key)`);
      await pool.end();
      return { url, schema };
    },
    async open({ url, schema }) {
      const { createPostgresStores, withPostgresTransaction } = await import("@countersign/store-postgres");
      const { fromPg } = await import("@countersign/databases");
      const pool = await newPool(url, 8);
      const { idempotency, nonces } = createPostgresStores({ pool, schema });
      const pay = (req, { idempotencyKey }) =>
        withPostgresTransaction(pool, async (client) => {
          await client.query(`INSERT INTO "${schema}".payouts VALUES ($1)`, [idempotencyKey]);
          await req.idempotency.completeIn(client);
        });
      const transactions = {
        stores: createPostgresStores({ database: fromPg(pool), schema }),
        async pay({ idempotencyKey }, { tx }) {
          await delay(Math.random() * longestHandlingMs);
          await tx.query(`INSERT INTO "${schema}".payouts VALUES ($1)`, [idempotencyKey]);
          await delay(Math.random() * longestHandlingMs);
        },
      };
      return { idempotency, nonces, pay, transactions };
    },
    inspect({ url, schema }) {
      const pool = newPool(url, 4);
      const read = async (text, values) => (await (await pool).query(text, values)).rows;
      return {
        isPaid: async (key) =>
          (await read(`SELECT 1 FROM "${schema}".payouts WHERE idempotency_key = $1`, [key])).length > 0,
        paidKeys: async () =>
          (await read(`SELECT idempotency_key AS key FROM "${schema}".payouts`)).map(({ key }) => key),
        async close() {
          await read(`DROP SCHEMA "${schema}" CASCADE`);
          await (await pool).end();
        },
      };
    },
  };
}

function mariadb() {
  return {
    needs: "MYSQL_URL",
    async prepare({ url }) {
      const table = isolatedName();
      const { migrateMysql } = await import("@countersign/store-mysql");
      const { fromMysql2 } = await import("@countersign/databases");
      const pool = await newMysqlPool(url, 1);
      await migrateMysql(fromMysql2(pool), { table });
      await pool.query(
        `CREATE TABLE ${table}_payouts (idempotency_key VARCHAR(128) NOT NULL, KEY (idempotency_key))`,
      );
      await pool.end();
      return { url, table };
    },
    async open({ url, table }) {
      const { createMysqlStores } = await import("@countersign/store-mysql");
      const { fromMysql2 } = await import("@countersign/databases");
      const database = fromMysql2(await newMysqlPool(url, 8));
      const stores = createMysqlStores({ database, table });
      const insert = (tx, key) => tx.query(`INSERT INTO ${table}_payouts VALUES (?)`, [key]);
      const pay = (req, { idempotencyKey }) =>
        database.run(async (tx) => {
          await insert(tx, idempotencyKey);
          await req.idempotency.completeIn(tx);
        });
      const transactions = {
        stores,
        async pay({ idempotencyKey }, { tx }) {
          await delay(Math.random() * longestHandlingMs);
          await insert(tx, idempotencyKey);
          await delay(Math.random() * longestHandlingMs);
        },
      };
      return { idempotency: stores.idempotency, nonces: stores.nonces, pay, transactions };
    },
    inspect({ url, table }) {
      const pool = newMysqlPool(url, 4);
      const read = async (text, values) => (await (await pool).query(text, values))[0];
      return {
        isPaid: async (key) =>
          (await read(`SELECT 1 FROM ${table}_payouts WHERE idempotency_key = ?`, [key])).length > 0,
        paidKeys: async () =>
          (await read(`SELECT idempotency_key AS k FROM ${table}_payouts`)).map(({ k }) => k),
        async close() {
          const names = await read(`SHOW TABLES LIKE '${table}\\_%'`);
          for (const row of names) await read(`DROP TABLE ${Object.values(row)[0]}`);
          await (await pool).end();
        },
      };
    },
  };
}

function stand(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function createPayouts(file, column) {
  const database = openPayouts(file);
  database.exec(`PRAGMA journal_mode = WAL; CREATE TABLE payouts (${column})`);
  database.exec("CREATE INDEX payouts_key ON payouts (idempotency_key)");
  database.close();
}

function openPayouts(file) {
  const database = new Database(file);
  database.exec("PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000");
  return database;
}

function inspectFile({ file }) {
  const database = openPayouts(file);
  const find = database.prepare("SELECT 1 FROM payouts WHERE idempotency_key = ?");
  const all = database.prepare("SELECT idempotency_key AS key FROM payouts");
  return {
    isPaid: async (key) => find.get(key) !== undefined,
    paidKeys: async () => all.all().map(({ key }) => key),
    close: async () => void database.close(),
  };
}

async function connectRedis(url) {
  const { createClient } = await import("redis");
  const client = createClient({ url }).on("error", () => {});
  await client.connect();
  return client;
}

async function removeKeys(url, prefix) {
  const client = await connectRedis(url);
  for await (const keys of client.scanIterator({ MATCH: `${prefix}*`, COUNT: 1_000 })) {
    if (keys.length > 0) await client.unlink(keys);
  }
  await client.close();
}

async function newPool(url, max) {
  const { default: pg } = await import("pg");
  return new pg.Pool({ connectionString: url, max }).on("error", () => {});
}

async function newMysqlPool(url, connectionLimit) {
  const { createPool } = await import("mysql2/promise");
  return createPool({ uri: url, connectionLimit });
}

function isolatedName() {
  return `cs_soak_${randomBytes(6).toString("hex")}`;
}
