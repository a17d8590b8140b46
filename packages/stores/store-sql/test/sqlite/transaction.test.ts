import { type SqliteDatabase, withImmediateTransaction } from "@countersign/store-sql";
import { describe, expect, test } from "@jest/globals";
import { isInTransaction } from "../../src/sqlite/connection.ts";
import { type Connection, type Open, connect, drivers, temporaryFile } from "./connections.ts";

function setUp(open: Open): Connection {
  const database = connect(temporaryFile(), open);
  database.exec("CREATE TABLE payouts (id INTEGER PRIMARY KEY) STRICT");
  return database;
}

const rows = (database: SqliteDatabase) => database.prepare("SELECT id FROM payouts").all().length;

/** A driver that does not tell whether a transaction is open, as node:sqlite before Node 22.16. */
function untelling(database: SqliteDatabase): SqliteDatabase {
  return { exec: (sql) => database.exec(sql), prepare: (sql) => database.prepare(sql) };
}

describe.each(drivers)("withImmediateTransaction(), %s", (_name, open) => {
  test.each([
    ["a driver that tells", (database: SqliteDatabase) => database],
    ["a driver that does not tell", untelling],
  ])("commits and returns, rolls back and throws, with %s", (_case, wrap) => {
    const own = setUp(open);
    const database = wrap(own);
    expect(
      withImmediateTransaction(database, (tx) => tx.prepare("INSERT INTO payouts VALUES (1)").run().changes),
    ).toBe(1);
    const failing = () =>
      withImmediateTransaction(database, (tx) => {
        tx.exec("INSERT INTO payouts VALUES (2)");
        expect(isInTransaction(tx)).toBe(true);
        throw new Error("no");
      });
    expect(failing).toThrow("no");
    expect(isInTransaction(database)).toBe(false);
    expect(rows(own)).toBe(1);
  });

  test("holds the write lock from its beginning", () => {
    const file = temporaryFile();
    const database = connect(file, open);
    const other = connect(file, open);
    withImmediateTransaction(database, () => {
      expect(() => other.exec("BEGIN IMMEDIATE")).toThrow(/locked/);
    });
    other.exec("BEGIN IMMEDIATE");
    expect(() => withImmediateTransaction(database, () => {})).toThrow(/locked/);
    other.exec("ROLLBACK");
  });

  test("refuses an asynchronous function and rolls its first part back", () => {
    const database = setUp(open);
    const promising = () =>
      withImmediateTransaction(database, (tx) => {
        tx.exec("INSERT INTO payouts VALUES (1)");
        return Promise.resolve();
      });
    expect(promising).toThrow(/synchronous/);
    expect(rows(database)).toBe(0);
  });

  test("refuses to begin inside a transaction and leaves that one as it is", () => {
    const database = setUp(open);
    withImmediateTransaction(database, (tx) => {
      tx.exec("INSERT INTO payouts VALUES (1)");
      expect(() => withImmediateTransaction(tx, () => {})).toThrow(/already open/);
    });
    expect(rows(database)).toBe(1);
  });

  test("keeps the first error when SQLite has already rolled back", () => {
    const database = setUp(open);
    const failing = () =>
      withImmediateTransaction(database, (tx) => {
        tx.exec("INSERT INTO payouts VALUES (1)");
        tx.exec("ROLLBACK");
        throw new Error("disk full");
      });
    expect(failing).toThrow("disk full");
  });

  test("rolls back when the commit itself fails", () => {
    const database = setUp(open);
    database.exec("PRAGMA foreign_keys = ON");
    database.exec(
      "CREATE TABLE lines (payout INTEGER REFERENCES payouts (id) DEFERRABLE INITIALLY DEFERRED) STRICT",
    );
    const failing = () => withImmediateTransaction(database, (tx) => tx.exec("INSERT INTO lines VALUES (7)"));
    expect(failing).toThrow(/FOREIGN KEY/);
    expect(isInTransaction(database)).toBe(false);
    expect(database.prepare("SELECT payout FROM lines").all()).toHaveLength(0);
  });
});

test("isInTransaction() passes on an error that says nothing about transactions", () => {
  const broken: SqliteDatabase = {
    exec: () => {
      throw new Error("the connection is closed");
    },
    prepare: () => {
      throw new Error("the connection is closed");
    },
  };
  expect(() => isInTransaction(broken)).toThrow("the connection is closed");
});
