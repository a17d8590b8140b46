// What a user may give to the factory of all engines by mistake.
import { createAnswers, createStores, migrate } from "@countersign/store-sql";
import { fromPg } from "@countersign/store-sql/pg";
import { afterAll, describe, expect, test } from "@jest/globals";
import Database from "libsql";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";

const sqlite = new Database(":memory:");
const pool = new Pool({ connectionString: "postgres://127.0.0.1:1/none" });
const mysqlPool = createPool("mysql://127.0.0.1:1/none");

afterAll(async () => {
  sqlite.close();
  await Promise.all([pool.end(), mysqlPool.end()]);
});

describe.each([
  ["createStores", createStores],
  ["createAnswers", createAnswers],
] as const)("%s()", (factory, create) => {
  test.each<[string, unknown, RegExp]>([
    ["nothing", undefined, /options must be an object/],
    ["no database", {}, /option database must be made by fromPg\(pool\), fromMysql2\(pool\) or its like/],
    ["a connection without braces", sqlite, /option database .* in braces$/],
    ["a pool of pg without braces", pool, /option database .* in braces$/],
    ["what fromPg() made, without braces", fromPg(pool), /option database .* in braces$/],
    [
      "a pool of pg as database",
      { database: pool },
      /option database got a pool: write database: fromPg\(pool\)/,
    ],
    [
      "a pool of mysql2 as database",
      { database: mysqlPool },
      /option database got a pool of mysql2: .*fromMysql2\(pool\)/,
    ],
    [
      "a pool of mysql2 as pool",
      { pool: mysqlPool },
      /option pool got a pool of mysql2: .*fromMysql2\(pool\)/,
    ],
    ["a promise of a connection", { database: Promise.resolve(sqlite) }, /option database must be made by/],
    ["a client of Prisma", { database: { $transaction() {} } }, /option database must be made by/],
    ["a misspelt option", { databse: sqlite }, /unknown option databse/],
    ["an option of another engine", { database: sqlite, schema: "s" }, /unknown option schema/],
  ])("refuses %s", (_case, options, message) => {
    const call = () => Reflect.apply(create, undefined, [options]) as unknown;
    expect(call).toThrow(TypeError);
    expect(call).toThrow(message);
    expect(call).toThrow(expect.objectContaining({ factory }));
  });
});

test.each<[string, unknown, RegExp]>([
  ["nothing", undefined, /^migrate: the first argument/],
  [
    "a connection of SQLite",
    sqlite,
    /^migrate: option database is SQLite's, whose tables createStores\(\) creates/,
  ],
  ["a pool of mysql2", mysqlPool, /^migrate: option database must be made by fromMysql2\(pool\)/],
])("migrate() refuses %s", async (_case, database, message) => {
  await expect(migrate(database as Pool)).rejects.toThrow(message);
});
