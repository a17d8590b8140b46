import { describe, test } from "node:test";
import {
  defineCases,
  idempotencyStoreContract,
  nonceStoreContract,
} from "@countersign/store-contract";
import { Pool } from "pg";
import { createMyNonces, createNonceTable } from "./my-nonces.js";
import { createMyStore, createTables } from "./my-store.js";

// A schema of the test's own: each case begins by emptying it.
const schema = "my_store_test";

function connect(): Pool {
  return new Pool({
    connectionString: process.env["DATABASE_URL"],
    options: `-c search_path=${schema}`,
    connectionTimeoutMillis: 5_000,
    query_timeout: 10_000,
  });
}

/** `create` makes the store on a pool, by the engine's clock or by `now`. */
function harnessOf<Store>(
  create: (pool: Pool, now?: () => number) => Store,
  isClockOurs: boolean,
) {
  return async () => {
    const pools = [connect()];
    await pools[0]?.query(
      `DROP SCHEMA IF EXISTS ${schema} CASCADE; CREATE SCHEMA ${schema};
      ${createTables}; ${createNonceTable}`,
    );
    let nowMs = Date.now();
    // A connection of its own, as another process has it.
    const another = () => {
      const pool = connect();
      pools.push(pool);
      return create(pool, isClockOurs ? () => nowMs : undefined);
    };
    return {
      store: another(),
      another,
      ...(isClockOurs && { advance: (ms: number) => void (nowMs += ms) }),
      close: async () => {
        await Promise.all(pools.splice(0).map((pool) => pool.end()));
      },
    };
  };
}

// What these harnesses do not offer: rules that nothing proves here.
const missing = ["fill", "engine", "durability"] as const;

for (const isClockOurs of [true, false]) {
  const clock = isClockOurs ? "the test's clock" : "the engine's clock";
  const without = isClockOurs ? missing : ([...missing, "clock"] as const);
  const keys = harnessOf(createMyStore, isClockOurs);
  defineCases(idempotencyStoreContract(keys, { without }), {
    title: `my store of keys, by ${clock}`,
    describe,
    test,
  });
  const nonces = harnessOf(createMyNonces, isClockOurs);
  const withoutClose = [...without, "close"] as const;
  defineCases(nonceStoreContract(nonces, { without: withoutClose }), {
    title: `my store of nonces, by ${clock}`,
    describe,
    test,
  });
}
