// The engines of the soak: what a payer process does on one, and what the program that judges it sees.
import { setTimeout as delay } from "node:timers/promises";
import { withImmediateTransaction } from "@countersign/store-sqlite";
import { databases, isolatedName } from "./databases.mjs";

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
export const engines = {
  sqlite: onDatabase("sqlite", async ({ database, stores }) => ({
    stores,
    run: async (work) => withImmediateTransaction(database, work),
    wait: () =>
      void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Math.random() * longestStandingMs),
  })),
  redis: redis(),
  postgres: onDatabase("postgres", async ({ pool }, { schema }) => {
    const { createPostgresStores, withPostgresTransaction } = await import("@countersign/store-postgres");
    return {
      stores: createPostgresStores({ pool, schema }),
      run: (work) => withPostgresTransaction(pool, work),
      wait: () => delay(Math.random() * longestHandlingMs),
    };
  }),
  mariadb: onDatabase("mariadb", async ({ database, stores }) => ({
    stores,
    run: (work) => database.run(work),
    wait: () => delay(Math.random() * longestHandlingMs),
  })),
};

/** What `leaseMode` gives: the stores of lease mode, how a payer opens a transaction of its own, and how long a handler takes. */
function onDatabase(name, leaseMode) {
  const { needs, prepare, open } = databases[name];
  return {
    needs,
    prepare: (where) => prepare(where, payoutsBy("NOT NULL")),
    async open(location) {
      const opened = await open(location, 8);
      const { stores, run, wait } = await leaseMode(opened, location);
      const insert = (tx, { idempotencyKey }) =>
        opened.write(tx, "payouts", { idempotency_key: idempotencyKey });
      // On SQLite nothing may wait.
      const then = (step, last) => (step instanceof Promise ? step.then(last) : last());
      return {
        idempotency: stores.idempotency,
        nonces: stores.nonces,
        pay: (req, payout) => run((tx) => then(insert(tx, payout), () => req.idempotency.completeIn(tx))),
        transactions: {
          stores: opened.stores,
          pay: (payout, given) => then(wait(), () => then(insert(given?.tx, payout), wait)),
        },
      };
    },
    inspect: (location) => inspect(name, location),
  };
}

// Redis knows no transaction with the payouts: they are in a database of their own, whose UNIQUE column makes the rerun of an
// attempt that died between its payout and its record harmless.
function redis() {
  const { prepare, open } = databases.sqlite;
  return {
    needs: "REDIS_URL",
    prepare: async ({ folder, url }) => ({
      ...(await prepare({ folder }, payoutsBy("NOT NULL UNIQUE"))),
      url,
      prefix: isolatedName(),
    }),
    async open({ file, url, prefix }) {
      const { createRedisStores } = await import("@countersign/store-redis");
      const client = await connectRedis(url);
      const sendCommand = (args) => client.sendCommand([...args]);
      const { idempotency, nonces } = createRedisStores({ sendCommand, prefix });
      const { database } = await open({ file });
      const insert = database.prepare(
        "INSERT INTO payouts (idempotency_key) VALUES (?) ON CONFLICT DO NOTHING",
      );
      const pay = (_req, { idempotencyKey }) =>
        void withImmediateTransaction(database, () => insert.run(idempotencyKey).changes);
      return { idempotency, nonces, pay };
    },
    inspect({ file, url, prefix }) {
      const payouts = inspect("sqlite", { file });
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

function payoutsBy(rule) {
  return { payouts: { columns: `place, idempotency_key VARCHAR(128) ${rule}`, index: "idempotency_key" } };
}

function inspect(name, location) {
  const opening = databases[name].open(location, 4);
  const read = async (...given) => (await opening).read("payouts", ...given);
  return {
    isPaid: async (key) => (await read("WHERE idempotency_key = ?", [key])).length > 0,
    paidKeys: async () => (await read()).map((row) => row.idempotency_key),
    async close() {
      const opened = await opening;
      await databases[name].remove(location, opened);
      await opened.close();
    },
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
