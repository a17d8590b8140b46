import { type IdempotencyClaim, idempotencyKeys } from "@countersign/idempotency";
import { type SqliteDatabase, withImmediateTransaction } from "@countersign/store-sql/sqlite";
import { describe, expect, test } from "@jest/globals";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { type Connection, connect, createStores, drivers, temporaryFile } from "./connections.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

const key = "payout-7.acc-1.acc-2";
const createPayouts = "CREATE TABLE IF NOT EXISTS payouts (idempotency_key TEXT NOT NULL) STRICT";

function claim(token: string): IdempotencyClaim {
  return { token, fingerprint: "f", leaseMs: 1000, recovery: "rerun" };
}

function payoutCount(database: SqliteDatabase): number {
  return database.prepare("SELECT idempotency_key FROM payouts").all().length;
}

describe.each(
  drivers.flatMap(([driver, open]) => [
    [`${driver}, the store's own connection`, open, true] as const,
    [`${driver}, another connection of the file`, open, false] as const,
  ]),
)("completeIn(), %s", (_name, open, sameConnection) => {
  function setUp() {
    const file = temporaryFile();
    const own = connect(file, open);
    const clock = testClock();
    const store = createStores(own, { now: clock.now }).idempotency;
    const tx: Connection = sameConnection ? own : connect(file, open);
    tx.exec("PRAGMA synchronous = FULL");
    tx.exec(createPayouts);
    const insertPayout = () => tx.prepare("INSERT INTO payouts VALUES (?)").run(key);
    return { store, clock, tx, insertPayout };
  }

  test("leaves the run when the savepoint around it is rolled back, whatever commits besides", () => {
    const { store, tx, insertPayout } = setUp();
    store.claim(key, claim("a"));
    withImmediateTransaction(tx, () => {
      insertPayout();
      tx.exec("SAVEPOINT bookkeeping");
      expect(store.completeIn(tx, key, "a")).toBe("ok");
      tx.exec("ROLLBACK TO bookkeeping");
      tx.exec("RELEASE bookkeeping");
    });
    // The payout stands and its key is not done: completeIn belongs outside of savepoints, or to those that hold the payout too.
    expect(payoutCount(tx)).toBe(1);
    expect(store.read(key)).toMatchObject({ state: "running", token: "a" });
    withImmediateTransaction(tx, () => {
      tx.exec("SAVEPOINT payout");
      expect(store.completeIn(tx, key, "a")).toBe("ok");
      tx.exec("RELEASE payout");
    });
    expect(store.read(key)).toMatchObject({ state: "done", token: "a" });
  });

  test("refuses a connection without an open transaction and changes nothing", () => {
    const { store, tx } = setUp();
    store.claim(key, claim("a"));
    expect(() => store.completeIn(tx, key, "a")).toThrow(/transaction is open/);
    withImmediateTransaction(tx, () => undefined);
    expect(() => store.completeIn(tx, key, "a")).toThrow(/transaction is open/);
    expect(store.read(key)).toMatchObject({ state: "running" });
  });
});

describe.each(drivers)("completeIn() with a foreign connection, %s", (_name, open) => {
  test("refuses a connection whose commits are not durable", () => {
    const file = temporaryFile();
    const store = createStores(connect(file, open)).idempotency;
    const tx = connect(file, open);
    tx.exec("PRAGMA synchronous = NORMAL");
    store.claim(key, claim("a"));
    tx.exec("BEGIN IMMEDIATE");
    expect(() => store.completeIn(tx, key, "a")).toThrow(/synchronous is 1/);
    tx.exec("ROLLBACK");
    expect(store.read(key)).toMatchObject({ state: "running" });
  });

  test("refuses a connection of a database that has no such table", () => {
    const store = createStores(connect(temporaryFile(), open)).idempotency;
    store.claim(key, claim("a"));
    const tx = connect(":memory:", open);
    tx.exec("BEGIN IMMEDIATE");
    expect(() => store.completeIn(tx, key, "a")).toThrow(/no such table/);
    tx.exec("ROLLBACK");
  });

  test("is not misled by a temporary table of the same name", () => {
    const file = temporaryFile();
    const store = createStores(connect(file, open)).idempotency;
    store.claim(key, claim("a"));
    const tx = connect(file, open);
    tx.exec("PRAGMA synchronous = FULL");
    tx.exec("CREATE TEMP TABLE countersign_idempotency AS SELECT * FROM main.countersign_idempotency");
    withImmediateTransaction(tx, () => expect(store.completeIn(tx, key, "a")).toBe("ok"));
    expect(store.read(key)).toMatchObject({ state: "done" });
  });

  test("leaves the connection usable after it could not get the write lock", () => {
    const file = temporaryFile();
    const store = createStores(connect(file, open)).idempotency;
    store.claim(key, claim("a"));
    const tx = connect(file, open);
    tx.exec("PRAGMA synchronous = FULL");
    tx.exec("PRAGMA busy_timeout = 20");
    const writer = connect(file, open);
    writer.exec("BEGIN IMMEDIATE");
    tx.exec("BEGIN DEFERRED");
    expect(() => store.completeIn(tx, key, "a")).toThrow(/locked/);
    tx.exec("ROLLBACK");
    writer.exec("ROLLBACK");
    withImmediateTransaction(tx, () => tx.exec(createPayouts));
    expect(payoutCount(tx)).toBe(0);
    withImmediateTransaction(tx, () => expect(store.completeIn(tx, key, "a")).toBe("ok"));
  });

  test("works in a deferred transaction, for which it takes the write lock first", () => {
    const file = temporaryFile();
    const store = createStores(connect(file, open)).idempotency;
    store.claim(key, claim("a"));
    const tx = connect(file, open);
    tx.exec("PRAGMA synchronous = EXTRA");
    tx.exec("BEGIN DEFERRED");
    expect(store.completeIn(tx, key, "a")).toBe("ok");
    const writer = connect(file, open);
    expect(() => writer.exec("BEGIN IMMEDIATE")).toThrow(/locked/);
    tx.exec("COMMIT");
    expect(store.read(key)).toMatchObject({ state: "done" });
  });

  test("refuses a malformed key and token, and everything after close", () => {
    const database = connect(temporaryFile(), open);
    const store = createStores(database).idempotency;
    database.exec("BEGIN IMMEDIATE");
    expect(() => store.completeIn(database, "", "a")).toThrow(TypeError);
    expect(() => store.completeIn(database, key, "")).toThrow(TypeError);
    store.close();
    expect(() => store.completeIn(database, key, "a")).toThrow(/closed/);
    database.exec("ROLLBACK");
  });
});

describe("completeIn() of what is no connection", () => {
  test.each<[string, unknown, RegExp]>([
    ["nothing", undefined, /needs the connection .+; got undefined\. See http/],
    ["a function", () => {}, /got a function\. See http/],
    ["a promise", Promise.resolve(), /has no function exec\. See http/],
    ["an ORM's handle", { run: () => {}, select: () => {} }, /has no function exec\. See http/],
    ["a client that answers by promises", { execute: async () => {} }, /has no function exec\. See http/],
  ])(
    "throws a TypeError at %s, and leaves the key to its handler's answer",
    async (_case, given, message) => {
      const [, open] = drivers[0] ?? [];
      if (open === undefined) throw new Error("there is no driver");
      const store = createStores(connect(temporaryFile(), open)).idempotency;
      const keys = idempotencyKeys({ factory: "test", store, recovery: "rerun" });
      const own = async (token: string) => {
        const owned = await keys.acquire({ key, token, fingerprint: "f" });
        if (owned.status !== "acquired") throw new Error(owned.status);
        expect(() => owned.completeIn(given)).toThrow(TypeError);
        expect(() => owned.completeIn(given)).toThrow(message);
        return owned;
      };
      await (await own("a")).release();
      expect(store.read(key)).toBeUndefined();
      // A handler that kept the error to itself, and says that it has paid.
      expectWarning(/^\[commit-not-confirmed\] CountersignWarning: test: key "payout-7.acc-1.acc-2" is held/);
      expect(await (await own("b")).complete()).toMatchObject({ status: 503 });
      expect(store.read(key)).toMatchObject({ state: "held" });
    },
  );
});
