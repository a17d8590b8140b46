import type { IdempotencyClaim } from "@countersign/idempotency";
import type { SqliteDatabase } from "@countersign/store-sql";
import type { TableStore } from "@countersign/idempotency/store";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { connect, openStores, databases, drivers, temporaryFile } from "./connections.ts";

const use = { scope: "key-1", nonce: "n", token: "a", retainMs: 120_000 };
const key = "payout-7.acc-1.acc-2";

function claim(token: string, overrides: Partial<IdempotencyClaim> = {}): IdempotencyClaim {
  return { token, fingerprint: `fingerprint-${token}`, leaseMs: 1000, recovery: "rerun", ...overrides };
}

describe.each(databases)("idempotency store, %s", (_name, open) => {
  let clock: ReturnType<typeof testClock>;
  let store: TableStore<"sync">;

  beforeEach(() => {
    clock = testClock();
    store = openStores(open(), { now: clock.now }).idempotency;
  });

  test("takes no argument that StoreGate refuses, at any step", () => {
    const steps: (() => unknown)[] = [
      () => store.claim("", claim("a")),
      () => store.claim("k".repeat(513), claim("a")),
      () => store.claim(key, claim("a", { leaseMs: 0 })),
      () => store.heartbeat(key, "a", 0),
      () => store.resolve(key, "done", {} as { fence: number }),
      () => store.list({ state: "constructor" as "running", limit: 1 }),
    ];
    for (const step of steps) expect(step).toThrow(TypeError);
  });

  test.each(["", "aGVsZA==", "_w"])("refuses the cursor %j of a list", (cursor) => {
    expect(() => store.list({ state: "held", limit: 1, cursor })).toThrow(TypeError);
  });
});

describe.each(drivers)("idempotency store by the engine's clock, %s", (_name, open) => {
  test.each([
    ["takes it", ["acquired", "in-flight"]],
    ["takes and completes it", ["acquired", "done"]],
    ["takes and holds it", ["acquired", "held"]],
  ])("decides again under the write lock when another process %s after the first look", (what, expected) => {
    const file = temporaryFile();
    const other = openStores(connect(file, open)).idempotency;
    const database = connect(file, open);
    let first: string | undefined;
    const late: SqliteDatabase = {
      exec: (sql) => {
        if (sql.startsWith("BEGIN") && first === "ready") {
          first = other.claim(key, claim("b")).status;
          if (what.includes("completes")) other.complete(key, "b");
          if (what.includes("holds")) other.hold(key, "b", "why");
        }
        return database.exec(sql);
      },
      prepare: (sql) => database.prepare(sql),
      get inTransaction() {
        return database.inTransaction ?? database.isTransaction;
      },
    };
    const store = openStores(late).idempotency;
    first = "ready";
    const second = store.claim(key, claim("a")).status;
    expect([first, second]).toEqual(expected);
  });

  test("keeps done, held and running keys over a restart", () => {
    const file = temporaryFile();
    const before = open(file);
    const first = openStores(before).idempotency;
    const beganAtMs = Date.now();
    first.claim("paid", claim("a"));
    first.complete("paid", "a");
    first.claim("in doubt", claim("a"));
    first.hold("in doubt", "a", "no answer from the bank");
    const running = first.claim("running", claim("a", { leaseMs: 60_000 }));
    if (running.status !== "acquired") throw new Error("not acquired");
    // A millisecond for the rounding of either clock.
    expect(running.fence).toBeGreaterThanOrEqual((beganAtMs - 1) * 1_000);
    expect(running.fence).toBeLessThanOrEqual((Date.now() + 1) * 1_000);
    first.close();
    before.close();
    const second = openStores(connect(file, open)).idempotency;
    expect(second.claim("paid", claim("b")).status).toBe("done");
    expect(second.claim("in doubt", claim("b"))).toMatchObject({ reason: "no answer from the bank" });
    expect(second.claim("running", claim("b")).status).toBe("in-flight");
    expect(second.claim("running", claim("a"))).toEqual(running);
  });

  test("answers duplicates of a paid key while another connection holds the write lock, and throws on a new key", () => {
    const file = temporaryFile();
    const database = connect(file, open);
    const store = openStores(database).idempotency;
    store.claim("paid", claim("a"));
    store.complete("paid", "a");
    store.claim("running", claim("a", { leaseMs: 60_000 }));
    database.exec("PRAGMA busy_timeout = 20");
    const writer = connect(file, open);
    writer.exec("BEGIN IMMEDIATE");
    expect(store.claim("paid", claim("b")).status).toBe("done");
    const duplicate = claim("b", { leaseMs: 60_000 });
    expect(store.claim("running", duplicate).status).toBe("in-flight");
    expect(() => store.claim("new", claim("b"))).toThrow(/locked/);
    expect(() => store.complete("running", "a")).toThrow(/locked/);
    writer.exec("ROLLBACK");
    expect(store.claim("new", claim("b")).status).toBe("acquired");
    expect(store.complete("running", "a")).toBe("ok");
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
    const { idempotency } = openStores(recording, { table: "operated" });
    queries.length = 0;
    idempotency.list({ state: "held", limit: 1 });
    expect(queries).toEqual([expect.stringMatching(/^SELECT/)]);
    const plan = JSON.stringify(database.prepare(`EXPLAIN QUERY PLAN ${queries[0]}`).all("", 1));
    expect(plan).toContain("INDEX operated_idempotency_unsettled (state=? AND key>?)");
    expect(plan).not.toContain("TEMP B-TREE");
  });

  test("makes its index again where that was dropped", () => {
    const file = temporaryFile();
    const database = connect(file, open);
    openStores(database).idempotency.claim("key", claim("a"));
    database.exec("DROP INDEX countersign_idempotency_unsettled");
    const again = openStores(connect(file, open)).idempotency;
    expect(again.list({ state: "running", limit: 1 })).toMatchObject({ entries: [{ key: "key" }] });
  });

  test("takes no nonce when it cannot write, and joins no transaction of the caller", () => {
    const file = temporaryFile();
    const database = connect(file, open);
    const store = openStores(database).nonces;
    database.exec("PRAGMA busy_timeout = 20");
    const writer = connect(file, open);
    writer.exec("BEGIN IMMEDIATE");
    expect(() => store.claim(use)).toThrow(/locked/);
    writer.exec("ROLLBACK");
    database.exec("BEGIN");
    expect(() => store.claim(use)).toThrow(/transaction is open/);
    database.exec("COMMIT");
    expect(store.claim(use)).toBe("fresh");
  });
});
