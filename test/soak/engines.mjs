// The engines of the soak: what a payer process does on one, and what the program that judges it sees.
import { setTimeout as delay } from "node:timers/promises";
import { databases, isolatedName } from "./databases.mjs";

export const payoutPath = "/api/v1/transaction";
/** A slow handler, before and after its payment: this is where most kills and stops find it. */
export const longestHandlingMs = 40;
// A synchronous one, which keeps every other payout waiting.
const longestStandingMs = 4;

/**
 * An engine has `prepare({ folder, url, isUnique })`, which returns the location of an empty store, as JSON; `open(location)` for a payer;
 * `inspect(location)` for the judge. `pay(payout)` is the handler of lease mode, which may run again under `rerun`, and so does no harm then:
 * the table of payouts refuses a second row. `faultOf(error)` names a fault of the database in which that table is. `transactions` has `pay`
 * for a handler that gets the transaction. Where only such handlers work, the table refuses nothing: a second payment would be seen.
 */
export const engines = {
  sqlite: onDatabase("sqlite", {
    wait: () =>
      void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Math.random() * longestStandingMs),
  }),
  redis: redis(),
  postgres: onDatabase("postgres"),
  mariadb: onDatabase("mariadb"),
};

/** `wait` says how long a handler takes that gets the transaction. */
function onDatabase(name, { wait = () => delay(Math.random() * longestHandlingMs) } = {}) {
  const { needs, prepare, open } = databases[name];
  return {
    needs,
    async prepare({ isUnique, ...where }) {
      return { ...(await prepare(where, payoutsBy(isUnique ? "NOT NULL UNIQUE" : "NOT NULL"))), isUnique };
    },
    async open({ isUnique, ...location }) {
      const { stores, write, writeOnce } = await open(location, 8);
      const rowOf = ({ idempotencyKey }) => ({ idempotency_key: idempotencyKey });
      const insert = isUnique ? writeOnce : write;
      // On SQLite nothing may wait.
      const then = (step, last) => (step instanceof Promise ? step.then(last) : last());
      return {
        idempotency: stores.idempotency,
        nonces: stores.nonces,
        faultOf: stores.transactions.faultOf,
        pay: (payout) => writeOnce(undefined, "payouts", rowOf(payout)),
        transactions: {
          stores,
          mayWriteNothing: isUnique,
          pay: (payout, { tx }) => then(wait(), () => then(insert(tx, "payouts", rowOf(payout)), wait)),
        },
      };
    },
    inspect: ({ isUnique: _isUnique, ...location }) => inspect(name, location),
  };
}

// Its payouts are in a database of their own.
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
      const { stores, writeOnce } = await open({ file });
      return {
        idempotency,
        nonces,
        faultOf: stores.transactions.faultOf,
        pay: ({ idempotencyKey }) => writeOnce(undefined, "payouts", { idempotency_key: idempotencyKey }),
      };
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
