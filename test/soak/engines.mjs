// The engines of the soak: what a payer process does on one, and what the program that judges it sees.
import { randomBytes } from "node:crypto";
import path from "node:path";
import { createSqliteStores, withImmediateTransaction } from "@countersign/store-sqlite";
import Database from "libsql";

export const payoutPath = "/api/v1/transaction";

/**
 * An engine has `prepare({ folder, url })`, which returns the location of an empty store, as JSON; `open(location)` for a
 * payer; `inspect(location)` for the judge. `pay(req, payout)` records a payout and, where the engine can, completes its
 * key in the same transaction. Only where it cannot does the table of payouts refuse a second row: elsewhere it would be seen.
 */
export const engines = { sqlite: sqlite(), redis: redis(), postgres: postgres() };

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
      const { idempotency, nonces } = createSqliteStores({ database });
      const insert = database.prepare("INSERT INTO payouts (idempotency_key) VALUES (?)");
      const pay = (req, { idempotencyKey }) =>
        withImmediateTransaction(database, (transaction) => {
          insert.run(idempotencyKey);
          return req.idempotency.completeIn(transaction);
        });
      return { idempotency, nonces, pay };
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
      const pool = await newPool(url, 8);
      const { idempotency, nonces } = createPostgresStores({ pool, schema });
      const pay = (req, { idempotencyKey }) =>
        withPostgresTransaction(pool, async (client) => {
          await client.query(`INSERT INTO "${schema}".payouts VALUES ($1)`, [idempotencyKey]);
          await req.idempotency.completeIn(client);
        });
      return { idempotency, nonces, pay };
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

function isolatedName() {
  return `cs_soak_${randomBytes(6).toString("hex")}`;
}
