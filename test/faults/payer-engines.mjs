// The stores of each engine, and the payouts beside them.
import { withImmediateTransaction } from "@countersign/store-sql";
import Database from "libsql";

/** Opens the stores and the payouts that `config` describes. */
export function openEngine(config, now) {
  return openers[config.kind](config, now);
}

const openers = {
  memory: openMemory,
  sqlite: openSqlite,
  redis: openRedis,
  postgres: openPostgres,
  mysql: openMysql,
};

/** Without a UNIQUE constraint: a second payment has to be seen, not prevented. */
export function payoutsTable(name, key = "key") {
  return `CREATE TABLE ${name} (${key} TEXT NOT NULL, token TEXT NOT NULL, fence BIGINT NOT NULL, amount INTEGER NOT NULL)`;
}

async function openMemory({ payouts, max }, now) {
  const { memoryAnswerStore, memoryIdempotencyStore } = await import("@countersign/idempotency");
  const { memoryNonceStore } = await import("@countersign/http-signature-verify");
  const idempotency = memoryIdempotencyStore({ max, now });
  const ledger = openLedger(payouts);
  return {
    stores: { idempotency, nonces: memoryNonceStore() },
    openAnswers: () => memoryAnswerStore({ now }),
    pay: (payment) => ledger.pay(payment),
    close: () => ledger.close(),
  };
}

async function openSqlite({ file, payouts, maxPages, retentionMs }, now) {
  const { createAnswers, createStores } = await import("@countersign/store-sql");
  const database = new Database(file);
  const stores = createStores({ database, pruneIntervalMs: 0, retentionMs, now });
  if (maxPages !== undefined) database.exec(`PRAGMA max_page_count = ${maxPages}`);
  const ledger = openLedger(payouts);
  return {
    stores,
    openAnswers: () => createAnswers({ database, pruneIntervalMs: 0, now }),
    openTransactions: () => ({
      stores,
      insert: (tx, row) => tx.prepare("INSERT INTO payouts VALUES (?, ?, ?, ?)").run(...row),
    }),
    pay: (payment) => ledger.pay(payment),
    close() {
      stores.close();
      ledger.close();
      database.close();
    },
  };
}

async function openRedis({ url, prefix, payouts }, now) {
  const { createRedisAnswers, createRedisStores } = await import("@countersign/store-redis");
  const { createClient } = await import("redis");
  const client = createClient({ url }).on("error", () => {});
  const options = { sendCommand: (args) => client.sendCommand([...args]), prefix, now };
  const stores = createRedisStores(options);
  await client.connect();
  const ledger = openLedger(payouts);
  return {
    stores,
    openAnswers: () => createRedisAnswers(options),
    pay: (payment) => ledger.pay(payment),
    close() {
      stores.close();
      ledger.close();
      client.destroy();
    },
  };
}

async function openPostgres({ url, schema, payouts, retentionMs }, now) {
  const { createAnswers, createStores } = await import("@countersign/store-sql");
  const { fromPg } = await import("@countersign/store-sql/pg");
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: url, max: 10, connectionTimeoutMillis: 2_000 });
  pool.on("error", () => {});
  const stores = createStores({ pool, schema, pruneIntervalMs: 0, retentionMs, now });
  const ledger = openLedger(payouts);
  return {
    stores,
    openAnswers: () => createAnswers({ pool, schema, pruneIntervalMs: 0, now }),
    openTransactions: () => ({
      stores: createStores({
        database: fromPg(pool),
        schema,
        pruneIntervalMs: 0,
        retentionMs,
        now,
      }),
      insert: (tx, row) => tx.query(`INSERT INTO "${schema}".payouts VALUES ($1, $2, $3, $4)`, row),
    }),
    pay: (payment) => ledger.pay(payment),
    async close() {
      stores.close();
      ledger.close();
      await pool.end();
    },
  };
}

async function openMysql({ url }, now) {
  const { createStores } = await import("@countersign/store-sql");
  const { fromMysql2 } = await import("@countersign/store-sql/mysql2");
  const { createPool } = await import("mysql2/promise");
  const pool = createPool({ uri: url, connectionLimit: 10, connectTimeout: 2_000 });
  const stores = createStores({ database: fromMysql2(pool), pruneIntervalMs: 0, now });
  return {
    stores,
    openTransactions: () => ({
      stores,
      insert: (tx, row) => tx.query("INSERT INTO payouts VALUES (?, ?, ?, ?)", row),
    }),
    async close() {
      stores.close();
      await pool.end();
    },
  };
}

/**
 * The bank of lease mode: payouts in a SQLite file of its own, beside the store. As a rail that remembers the highest fence of a key, it
 * refuses an attempt that a newer one has overtaken.
 */
function openLedger(file) {
  const database = new Database(file);
  database.exec("PRAGMA busy_timeout = 5000");
  const insert = prepareInsert(database);
  const highest = database.prepare("SELECT coalesce(max(fence), 0) AS fence FROM payouts WHERE key = ?");
  return {
    pay({ attempt, amount, points }) {
      withImmediateTransaction(database, () => {
        if (highest.get(attempt.key).fence > attempt.fence) throw new Error("a newer attempt has paid");
        insert(attempt, amount);
        points.block("before commit");
      });
    },
    close: () => database.close(),
  };
}

function prepareInsert(database) {
  const insert = database.prepare("INSERT INTO payouts VALUES (?, ?, ?, ?)");
  return ({ key, token, fence }, amount) => insert.run(key, token, fence, amount);
}
