import { type PostgresStoresOptions, createStores, migrate, postgresMigration } from "@countersign/store-sql";
import { fromPg } from "@countersign/store-sql/pg";
import type { TransactionStores } from "@countersign/idempotency";
import { describe, expect, test } from "@jest/globals";
import { Pool, type PoolClient } from "pg";
import { dayMs } from "./connections.ts";

const pool = { query: () => Promise.resolve({ rows: [] }) };

const database = fromPg({ ...pool, connect: (): Promise<never> => Promise.reject(new Error("none")) });

describe("createStores() options", () => {
  test.each<[string, unknown, RegExp]>([
    ["no options", undefined, /options must be an object/],
    ["no pool", {}, /option database must be made by fromPg\(pool\)/],
    ["both pool and database", { pool, database }, /option pool cannot be set beside database/],
    ["a database as pool", { pool: database }, /option pool .* write database: …/],
    ["a pool as database", { database: pool }, /option database .* write database: fromPg\(pool\)/],
    ["a URL as database", { database: "postgres://localhost" }, /option database must be made by fromPg/],
    [
      "a database of MariaDB",
      { database: { ...database, dialect: "mysql", change: undefined } },
      /option database must be your database library on MySQL or MariaDB/,
    ],
    ["a URL as pool", { pool: "postgres://localhost" }, /option pool/],
    ["null as pool", { pool: null }, /option pool/],
    ["a pool without query", { pool: { connect: () => {} } }, /option pool/],
    ["a misspelt option", { pool, retention: 1 }, /unknown option retention/],
    ["an empty table", { pool, table: "" }, /option table/],
    ["a table that is no text", { pool, table: 7 }, /option table/],
    ["a table of 41 bytes", { pool, table: "x".repeat(41) }, /option table must be 1 to 40 bytes/],
    ["a table of 14 characters and 42 bytes", { pool, table: "\u20ac".repeat(14) }, /option table/],
    ["a table with a NUL", { pool, table: "a\0b" }, /option table/],
    ["a table with a lone surrogate", { pool, table: "a\ud800" }, /option table/],
    ["a table with a dollar sign", { pool, table: "$countersign$" }, /option table/],
    ["a table with a backslash", { pool, table: "a\\" }, /option table/],
    ["a schema with a question mark", { pool, schema: "what?" }, /option schema .*question marks/],
    ["a schema with a line break", { pool, schema: "a\n" }, /option schema/],
    ["a schema of 64 bytes", { pool, schema: "x".repeat(64) }, /option schema must be 1 to 63 bytes/],
    ["a retention below a day", { pool, retentionMs: dayMs - 1 }, /option retentionMs/],
    ["a retention that is text", { pool, retentionMs: "90d" }, /option retentionMs/],
    ["a negative interval", { pool, pruneIntervalMs: -1 }, /option pruneIntervalMs/],
    ["an interval above a day", { pool, pruneIntervalMs: dayMs + 1 }, /option pruneIntervalMs/],
    ["a lock timeout of 0, which would wait for ever", { pool, lockTimeoutMs: 0 }, /option lockTimeoutMs/],
    ["a lock timeout above a minute", { pool, lockTimeoutMs: 60_001 }, /option lockTimeoutMs/],
    ["half a millisecond of lock timeout", { pool, lockTimeoutMs: 0.5 }, /option lockTimeoutMs/],
    ["prepared statements of a library", { database, prepare: true }, /option prepare needs the option pool/],
    ["prepared statements without a Pool of pg", { pool, prepare: true }, /option prepare .* a Pool of pg/],
    ["a clock that is a number", { pool, now: 5 }, /option now/],
  ])("refuses %s", (_name, options, message) => {
    const create = () => createStores(options as PostgresStoresOptions);
    expect(create).toThrow(TypeError);
    expect(create).toThrow(message);
    expect(create).toThrow(expect.objectContaining({ factory: "createStores" }));
  });

  test.each([
    ["the default", undefined, 90 * dayMs],
    ["its option", 3 * dayMs, 3 * dayMs],
  ])("can be asked for the retention of a key: %s", (_case, retentionMs, expected) => {
    const stores = createStores({ pool, retentionMs });
    stores.close();
    expect(stores.idempotency.retentionMs).toBe(expected);
  });
});

test("createStores() has transactions with a database alone, of its clients", () => {
  const without = createStores({ pool, pruneIntervalMs: 0 });
  expect(without).not.toHaveProperty("transactions");
  // @ts-expect-error -- with a pool there are none
  expect(without.transactions).toBeUndefined();
  const stores = createStores({ database: fromPg(new Pool()), pruneIntervalMs: 0 });
  const { transactions }: TransactionStores<PoolClient, "async"> = stores;
  expect(transactions.mode).toBe("async");
  for (const made of [without, stores]) made.close();
});

describe("postgresMigration() and migrate()", () => {
  test.each<[string, object, RegExp]>([
    ["a bad table", { table: "no\nbreaks" }, /option table/],
    ["a bad schema", { schema: "" }, /option schema/],
    ["an option that they do not have", { pool }, /unknown option pool/],
  ])("refuse %s", async (_case, options, message) => {
    expect(() => postgresMigration(options)).toThrow(message);
    await expect(migrate(pool, options)).rejects.toThrow(TypeError);
  });

  test("refuse something that runs no queries", async () => {
    await expect(migrate({} as typeof pool)).rejects.toThrow(/must be a Pool or Client/);
  });
});
