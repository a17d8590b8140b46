import { onTraceEnd, traces } from "@countersign/core";
import { createStores } from "@countersign/store-sql";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { connect, openStores, databases, dayMs, drivers, temporaryFile } from "./connections.ts";

const claim = { token: "a", fingerprint: "f", leaseMs: 1000, recovery: "hold" } as const;

function rowCount(database: ReturnType<typeof connect>, table = "idempotency"): number {
  return database.prepare(`SELECT until_ms FROM countersign_${table}`).all().length;
}

describe.each(databases)("prune(), %s", (_name, open) => {
  test("removes more than a batch, and lets no fence shrink", () => {
    const clock = testClock();
    const database = open();
    const store = openStores(database, { now: clock.now }).idempotency;
    for (let index = 0; index < 501; index++) {
      store.claim(`key-${index}`, claim);
      store.release(`key-${index}`, "a");
    }
    store.claim("key-7", claim);
    const fence = clock.now() * 1_000 + 1;
    expect(store.claim("key-7", claim)).toEqual({ status: "acquired", fence });
    store.complete("key-7", "a");
    clock.advance(90 * dayMs);
    expect(store.prune()).toBe(1);
    expect(rowCount(database)).toBe(0);
    clock.advance(-90 * dayMs);
    expect(store.claim("key-7", claim)).toEqual({ status: "acquired", fence: fence + 1 });
  });
});

describe.each(drivers)("pruning in the background, %s", (_name, open) => {
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ["performance"] });
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  test("removes a batch per tick, quickly while there is more, and ends with close", async () => {
    const database = connect(temporaryFile(), open);
    const clock = testClock();
    const stores = createStores({ database, now: clock.now, pruneIntervalMs: 10_000 });
    for (let index = 0; index < 600; index++) {
      stores.nonces.claim({ scope: "s", nonce: `n${index}`, token: "a", retainMs: 1 });
    }
    stores.idempotency.claim("k", claim);
    stores.idempotency.release("k", "a");
    clock.advance(90 * dayMs);
    await jest.advanceTimersByTimeAsync(7_499);
    expect(rowCount(database, "nonces")).toBe(600);
    const told = new Set<string>();
    const end = onTraceEnd(traces.store, ({ engine, step, outcome }) => {
      // What an earlier file has left under way is no pruning.
      if (step === "prune") told.add(`${engine} ${outcome}`);
    });
    await jest.advanceTimersByTimeAsync(5_001 + 100);
    end();
    expect([...told]).toEqual(["sqlite ok"]);
    expect(rowCount(database, "nonces")).toBe(0);
    expect(rowCount(database)).toBe(0);
    stores.close();
    expect(jest.getTimerCount()).toBe(0);
  });

  test("waits while the caller has a transaction open, and tries again", async () => {
    const database = connect(temporaryFile(), open);
    const clock = testClock();
    const stores = createStores({ database, now: clock.now, pruneIntervalMs: 1000 });
    stores.idempotency.claim("k", claim);
    stores.idempotency.release("k", "a");
    clock.advance(90 * dayMs);
    database.exec("BEGIN");
    await jest.advanceTimersByTimeAsync(2000);
    expect(rowCount(database)).toBe(1);
    database.exec("COMMIT");
    await jest.advanceTimersByTimeAsync(2000);
    expect(rowCount(database)).toBe(0);
    stores.close();
  });
});

test.each([
  ["idempotency", "state IN ('done', 'free') AND until_ms <= 0"],
  ["nonces", "until_ms < 0"],
])("expired rows of %s are found by an index", (table, condition) => {
  const database = connect(temporaryFile());
  openStores(database);
  const query = `EXPLAIN QUERY PLAN SELECT * FROM countersign_${table} WHERE ${condition} ORDER BY until_ms LIMIT 500`;
  const plan = JSON.stringify(database.prepare(query).all());
  expect(plan).toContain(`INDEX countersign_${table}_until`);
  expect(plan).not.toContain("TEMP B-TREE");
});
