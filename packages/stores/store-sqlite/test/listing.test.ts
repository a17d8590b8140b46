import type { IdempotencyClaim, IdempotencyListing, IdempotencyListQuery } from "@countersign/idempotency";
import type { SqliteIdempotencyStore } from "../dist/idempotency-store.js";
import { createSqliteStores } from "@countersign/store-sqlite";
import { beforeEach, describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import {
  type Connection,
  connect,
  createStores,
  databases,
  dayMs,
  drivers,
  temporaryFile,
  testClock,
} from "./connections.ts";

const leaseMs = 1000;

function claim(token: string): IdempotencyClaim {
  return { token, fingerprint: `fingerprint-${token}`, leaseMs, recovery: "rerun" };
}

function keysOf({ entries }: IdempotencyListing): string[] {
  return entries.map(({ key }) => key);
}

/** Every page to the last one. */
function pages(store: SqliteIdempotencyStore, query: Omit<IdempotencyListQuery, "cursor">): string[][] {
  const all: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = store.list({ ...query, cursor });
    all.push(keysOf(page));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return all;
}

describe.each(databases)("list, %s", (_name, open) => {
  let database: Connection;
  let clock: ReturnType<typeof testClock>;
  let store: SqliteIdempotencyStore;

  beforeEach(() => {
    database = open();
    clock = testClock();
    store = createStores(database, { now: clock.now }).idempotency;
    for (const key of ["running", "held", "done", "released"]) store.claim(key, claim(key));
    store.hold("held", "held", "bank timed out");
    store.complete("done", "done");
    store.release("released", "released");
  });

  test.each(["run", "held", "done"] as const)("lists the keys in state %s as read() gives them", (state) => {
    clock.advance(300);
    const key = state === "run" ? "running" : state;
    expect(store.list({ state, limit: 10 })).toEqual({
      entries: [{ key, record: store.read(key) }],
      cursor: undefined,
    });
    expect(store.read(key)?.state).toBe(state);
  });

  test("lists a run whose lease has expired, and says since when", () => {
    clock.advance(leaseMs + 250);
    const { entries } = store.list({ state: "run", limit: 10 });
    expect(entries).toMatchObject([{ key: "running", record: { state: "run", remainingMs: -250 } }]);
  });

  test("lists a done key to the end of its retention and not at it", () => {
    clock.advance(90 * dayMs - 1);
    expect(keysOf(store.list({ state: "done", limit: 10 }))).toEqual(["done"]);
    clock.advance(1);
    expect(store.list({ state: "done", limit: 10 })).toEqual({ entries: [], cursor: undefined });
  });

  test("gives each key once over pages that end with the last key", () => {
    for (const key of ["a", "b", "c", "d"]) {
      store.claim(key, claim(key));
      store.hold(key, key, "why");
    }
    expect(pages(store, { state: "held", limit: 2 })).toEqual([["a", "b"], ["c", "d"], ["held"]]);
    expect(pages(store, { state: "held", limit: 5 })).toEqual([["a", "b", "c", "d", "held"]]);
    expect(pages(store, { state: "held", limit: 1 })).toHaveLength(5);
  });

  test("goes on behind the last key although that key and earlier ones have changed", () => {
    for (const key of ["a", "b", "c"]) {
      store.claim(key, claim(key));
      store.hold(key, key, "why");
    }
    const first = store.list({ state: "held", limit: 2 });
    expect(keysOf(first)).toEqual(["a", "b"]);
    store.resolve("a", "done", { fence: store.read("a")?.fence ?? 0 });
    store.resolve("b", "released", { fence: store.read("b")?.fence ?? 0 });
    store.claim("0", claim("0"));
    store.hold("0", "0", "why");
    expect(keysOf(store.list({ state: "held", limit: 2, cursor: first.cursor }))).toEqual(["c", "held"]);
  });

  test("changes nothing", () => {
    const before = ["running", "held", "done", "released"].map((key) => store.read(key));
    for (const state of ["run", "held", "done"] as const) pages(store, { state, limit: 1 });
    expect(["running", "held", "done", "released"].map((key) => store.read(key))).toEqual(before);
  });

  test.each<[string, unknown]>([
    ["no state", { limit: 1 }],
    ["an unknown state", { state: "free", limit: 1 }],
    ["a state of Object.prototype", { state: "constructor", limit: 1 }],
    ["no limit", { state: "held" }],
    ["limit 0", { state: "held", limit: 0 }],
    ["limit 1,001", { state: "held", limit: 1001 }],
    ["a limit that is no integer", { state: "held", limit: 1.5 }],
    ["a limit in a string", { state: "held", limit: "10" }],
    ["an empty cursor", { state: "held", limit: 1, cursor: "" }],
    ["a damaged cursor", { state: "held", limit: 1, cursor: "aGVsZA==" }],
    ["a cursor that is no UTF-8", { state: "held", limit: 1, cursor: "_w" }],
    ["a cursor that is no string", { state: "held", limit: 1, cursor: 7 }],
  ])("refuses %s", (_case, query) => {
    expect(() => store.list(query as IdempotencyListQuery)).toThrow(TypeError);
  });

  test("refuses to read inside a transaction of the caller, and after close()", () => {
    database.exec("BEGIN");
    expect(() => store.list({ state: "held", limit: 1 })).toThrow(/a transaction is open/);
    database.exec("ROLLBACK");
    store.close();
    expect(() => store.list({ state: "held", limit: 1 })).toThrow(/closed/);
  });

  test("takes pages of up to 1,000 keys", () => {
    database.exec("BEGIN");
    const insert = database.prepare(
      "INSERT INTO countersign_idempotency (key, state, token, fence, fingerprint, reason, until_ms) VALUES (?, 'held', 't', 1, 'f', 'why', 0)",
    );
    for (let index = 0; index < 1500; index += 1) insert.run(`many-${String(index).padStart(4, "0")}`);
    database.exec("COMMIT");
    expect(pages(store, { state: "held", limit: 1000 }).map((page) => page.length)).toEqual([1000, 501]);
  });
});

describe.each(drivers)("list by the engine, %s", (_name, open) => {
  test("counts what remains of a lease on SQLite's clock", () => {
    const { idempotency } = createStores(connect(temporaryFile(), open));
    idempotency.claim("key", { ...claim("a"), leaseMs: 60_000 });
    const record = idempotency.list({ state: "run", limit: 1 }).entries[0]?.record;
    if (record?.state !== "run") throw new Error("not running");
    expect(record.remainingMs).toBeGreaterThan(55_000);
    expect(record.remainingMs).toBeLessThanOrEqual(60_000);
    idempotency.complete("key", "a");
    expect(keysOf(idempotency.list({ state: "done", limit: 1 }))).toEqual(["key"]);
  });

  test("finds the keys that are not settled by an index, however many are done", () => {
    const database = connect(temporaryFile(), open);
    const queries: string[] = [];
    const recording = {
      exec: (sql: string) => database.exec(sql),
      prepare: (sql: string) => {
        queries.push(sql);
        return database.prepare(sql);
      },
    };
    createStores(recording, { table: "operated" });
    const query = queries.find((sql) => sql.includes("state = ?") && sql.startsWith("SELECT")) ?? "";
    const plan = JSON.stringify(database.prepare(`EXPLAIN QUERY PLAN ${query}`).all(0, "held", "", 1));
    expect(plan).toContain("INDEX operated_idempotency_unsettled (state=? AND key>?)");
    expect(plan).not.toContain("TEMP B-TREE");
  });

  test("adds the index to tables that an earlier release made", () => {
    const file = temporaryFile();
    const database = connect(file, open);
    createStores(database).idempotency.claim("key", claim("a"));
    database.exec("DROP INDEX countersign_idempotency_unsettled");
    const again = createStores(connect(file, open)).idempotency;
    expect(keysOf(again.list({ state: "run", limit: 1 }))).toEqual(["key"]);
  });
});

const anyKey = fc.string({
  unit: fc.constantFrom("a", "b", "\0", "\\", '"', "\ud800", "é", "💸"),
  minLength: 1,
});

test.each(drivers)("lists any keys, each once, whatever the size of the pages, %s", (_name, open) => {
  const database = connect(":memory:", open);
  let table = 0;
  fc.assert(
    fc.property(fc.uniqueArray(anyKey, { maxLength: 12 }), fc.integer({ min: 1, max: 5 }), (keys, limit) => {
      table += 1;
      const options = { database, table: `t${table}`, pruneIntervalMs: 0 };
      const { idempotency } = createSqliteStores(options);
      for (const key of keys) idempotency.claim(key, claim("a"));
      const listed = pages(idempotency, { state: "run", limit });
      expect(listed.flat()).toHaveLength(keys.length);
      expect(new Set(listed.flat())).toEqual(new Set(keys));
      expect(listed.every((page) => page.length <= limit)).toBe(true);
    }),
    { numRuns: 60 },
  );
});
