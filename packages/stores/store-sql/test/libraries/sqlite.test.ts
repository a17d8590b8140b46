import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, jest, test } from "@jest/globals";
import { refuse } from "@countersign/idempotency-guard";
import { fromDrizzle } from "@countersign/store-sql/drizzle";
import { fromKnex } from "@countersign/store-sql/knex";
import { fromKysely } from "@countersign/store-sql/kysely";
import { fromMikroOrm } from "@countersign/store-sql/mikro-orm";
import { fromSequelize } from "@countersign/store-sql/sequelize";
import { fromTypeOrm } from "@countersign/store-sql/typeorm";
import { createStores } from "@countersign/store-sql";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { sqliteTable, text } from "drizzle-orm/sqlite-core";
import knex from "knex";
import { Kysely, SqliteDialect } from "kysely";
import Database from "libsql";
import { Sequelize } from "sequelize";
import { DataSource } from "typeorm";
import { payerOn } from "./table/payer.ts";

// Drizzle takes the driver that it is given, and imports the one that it opens by itself: libsql has the same functions.
jest.unstable_mockModule("better-sqlite3", () => ({ default: Database }), { virtual: true });
const { drizzle } = await import("drizzle-orm/better-sqlite3");

const payments = sqliteTable("payments", { id: text().primaryKey() });

type Handler = (db: ReturnType<typeof drizzle>, key: string) => unknown;

/** Drizzle and the stores on one connection, with rows as a second one sees them. */
function open() {
  const folder = mkdtempSync(path.join(tmpdir(), "databases-"));
  afterTest(() => rmSync(folder, { recursive: true }));
  const connect = () => {
    const connection = new Database(path.join(folder, "platform.db"));
    afterTest(() => connection.close());
    return connection;
  };
  const database = connect();
  database.exec("CREATE TABLE payments (id TEXT PRIMARY KEY) STRICT");
  const stores = createStores({ database, pruneIntervalMs: 0 });
  afterTest(() => stores.close());
  const db = drizzle(database);
  const other = connect();
  return {
    stores,
    other,
    payer: (handler: Handler) => payerOn(stores, (_tx, key) => handler(db, key)),
    rows: () => other.prepare("SELECT id FROM payments").all().length,
  };
}

const insert: Handler = (db, id) => void db.insert(payments).values({ id }).run();

test("Drizzle pays with its key and nonce, and once", async () => {
  const { payer, rows } = open();
  const pay = payer(insert);
  expect(await pay("a", "n")).toBe(200);
  expect(await pay("a", "n")).toBe("nonce-replayed");
  const answers = await Promise.all(Array.from({ length: 6 }, () => [pay("a"), pay("b")]).flat());
  expect(answers.filter((answer) => answer === 200)).toHaveLength(1);
  expect(rows()).toBe(2);
});

test("Drizzle's row goes, and the nonce stays, when the payment is refused", async () => {
  const { payer, rows } = open();
  const pay = payer((db, key) => {
    insert(db, key);
    throw refuse("account-frozen");
  });
  expect(await pay("a", "n")).toBe("account-frozen");
  expect(await pay("a", "n")).toBe("nonce-replayed");
  expect(await pay("a")).toBe("account-frozen");
  expect(rows()).toBe(0);
});

test("a statement of Drizzle that fails leaves the key free", async () => {
  const { payer, rows } = open();
  const twice: Handler = (db, key) => [insert(db, key), insert(db, key)];
  expect(await payer(twice)("a")).toBe("SQLITE_CONSTRAINT_PRIMARYKEY");
  expect(await payer(insert)("a")).toBe(200);
  expect(rows()).toBe(1);
});

test("a statement that is returned in place of run() is not answered as paid", async () => {
  const { payer, rows } = open();
  const unrun = payer((db, id) => db.insert(payments).values({ id }));
  expect(await unrun("a")).toMatch("must be synchronous");
  expect(rows()).toBe(0);
});

test("Drizzle on another connection meets the write lock, and nothing is paid", async () => {
  const { payer, other, rows } = open();
  other.exec("PRAGMA busy_timeout = 0");
  const elsewhere = drizzle(other);
  const pay = payer((_db, key) => insert(elsewhere, key));
  expect(await pay("a")).toBe("transaction-conflict");
  expect(rows()).toBe(0);
});

class KnexClient extends knex.Client {
  override dialect = "sqlite3";
}
// As much as is looked at: its own package for SQLite is not installed.
const mikroOrm = {
  em: { getConnection: () => ({ getKnex: () => ({ client: { driverName: "better-sqlite3" } }) }) },
};

const libraries: Readonly<Record<string, () => unknown>> = {
  // @ts-expect-error -- as a caller without types
  Drizzle: () => fromDrizzle(drizzle(new Database(":memory:"))),
  Kysely: () =>
    fromKysely(new Kysely({ dialect: new SqliteDialect({ database: new Database(":memory:") }) })),
  Knex: () => fromKnex(knex.default({ client: KnexClient })),
  TypeORM: () =>
    fromTypeOrm(new DataSource({ type: "better-sqlite3", database: ":memory:", driver: Database })),
  // @ts-expect-error -- as a caller without types
  MikroORM: () => fromMikroOrm(mikroOrm),
  Sequelize: () => fromSequelize(new Sequelize({ dialect: "sqlite", dialectModule: { Database } })),
};

test.each(Object.entries(libraries))("%s on SQLite is refused, with what to do instead", (_name, from) => {
  expect(from).toThrow(TypeError);
  expect(from).toThrow("on SQLite transactions are synchronous: give createStores() a connection");
});
