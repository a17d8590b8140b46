import type { IdempotencyClaim } from "@countersign/idempotency";
import type { SqliteDatabase } from "@countersign/store-sqlite";
import type { SqliteIdempotencyStore } from "../dist/idempotency-store.js";
import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { steadyTest } from "@countersign/test-support/runs/steadily.ts";
import { connect, createStores, databases, dayMs, drivers, temporaryFile, testClock } from "./connections.ts";

const key = "payout-7.acc-1.acc-2";

function claim(token: string, overrides: Partial<IdempotencyClaim> = {}): IdempotencyClaim {
  return { token, fingerprint: `fingerprint-${token}`, leaseMs: 1000, recovery: "rerun", ...overrides };
}

/** The fence of an attempt that begins so many milliseconds after the clock of the tests. */
function fenceAt(ms: number): number {
  return (testClock().now() + ms) * 1_000;
}

describe.each(databases)("idempotency store, %s", (_name, open) => {
  let clock: ReturnType<typeof testClock>;
  let store: SqliteIdempotencyStore;

  beforeEach(() => {
    clock = testClock();
    store = createStores(open(), { now: clock.now }).idempotency;
  });

  test.each(["done", "released"] as const)(
    "resolves as %s only the attempt with the fence of the decision, and leaves its owner nothing to end",
    (outcome) => {
      store.claim(key, claim("a"));
      store.hold(key, "a", "why");
      const fence = fenceAt(0);
      for (const other of [fence - 1, fence + 1, 0, Number.MAX_SAFE_INTEGER]) {
        expect(store.resolve(key, outcome, { fence: other })).toBe("not-held");
      }
      expect(store.read(key)).toMatchObject({ state: "held", token: "a", reason: "why" });
      expect(store.resolve(key, outcome, { fence })).toBe("ok");
      for (const step of [
        store.complete(key, "a"),
        store.release(key, "a"),
        store.hold(key, "a", "late"),
        store.heartbeat(key, "a", 1000),
      ]) {
        expect(step).toBe("lost");
      }
      const uuid: unknown = expect.stringMatching(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
      const decision = { outcome: "done", fence, at: expect.any(Number) as unknown, reason: "why" };
      const done = { state: "done", token: uuid, fence, fingerprint: "fingerprint-a", decision };
      expect(store.read(key)).toEqual(outcome === "done" ? done : undefined);
    },
  );

  test.each([undefined, null, {}, { fence: "1" }, { fence: 1.5 }])("refuses the decision %p", (decision) => {
    store.claim(key, claim("a"));
    store.hold(key, "a", "why");
    expect(() => store.resolve(key, "done", decision as { fence: number })).toThrow(/needs \{ fence \}/);
    expect(store.read(key)).toMatchObject({ state: "held" });
  });

  test("gives a key that was pruned a higher fence, also when the clock was set back", () => {
    store.claim(key, claim("a"));
    store.complete(key, "a");
    clock.advance(90 * dayMs);
    store.prune();
    clock.advance(-91 * dayMs);
    expect(store.claim(key, claim("b"))).toEqual({ status: "acquired", fence: fenceAt(0) + 1 });
  });

  test.each([
    ["an empty key", "", "t"],
    ["a key of 513 characters", "k".repeat(513), "t"],
    ["an object as key", { length: 3 }, "t"],
    ["an array as key", ["k"], "t"],
    ["an empty token", "k", ""],
    ["a number as token", "k", 7],
  ])("refuses %s", (_case, badKey, token) => {
    expect(() => store.claim(badKey as string, claim(token as string))).toThrow(TypeError);
    expect(() => store.complete(badKey as string, token as string)).toThrow(TypeError);
  });

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "1000"])(
    "refuses a lease of %p",
    (leaseMs) => {
      expect(() => store.claim(key, claim("a", { leaseMs: leaseMs as number }))).toThrow(/leaseMs/);
      expect(() => store.heartbeat(key, "a", leaseMs as number)).toThrow(/leaseMs/);
    },
  );

  test("refuses an outcome that it does not know", () => {
    expect(() => store.resolve(key, "paid" as "done", { fence: fenceAt(0) })).toThrow(/outcome/);
  });

  test("keeps hostile keys apart and unchanged", () => {
    for (const [index, [, hostile]] of hostileKeys.entries()) {
      expect(store.claim(hostile, claim(`t${index}`))).toEqual({ status: "acquired", fence: fenceAt(0) });
    }
    for (const [index, [, hostile]] of hostileKeys.entries()) {
      expect(store.read(hostile)).toMatchObject({ token: `t${index}` });
      expect(store.complete(hostile, `t${index}`)).toBe("ok");
      expect(store.claim(hostile, claim("late"))).toEqual({
        status: "done",
        fingerprint: `fingerprint-t${index}`,
      });
    }
  });

  test("gives back tokens, fingerprints and reasons as they were given", () => {
    for (const [, text] of hostileKeys) {
      store.claim(`key ${text}`.slice(0, 512), claim(text, { fingerprint: text }));
      store.hold(`key ${text}`.slice(0, 512), text, text);
      expect(store.read(`key ${text}`.slice(0, 512))).toEqual({
        state: "held",
        token: text,
        fence: fenceAt(0),
        fingerprint: text,
        reason: text,
      });
    }
  });
});

const hostileKeys: readonly (readonly [string, string])[] = [
  ["NUL inside", "a\0b"],
  ["the same up to the NUL", "a\0c"],
  ["the text before the NUL", "a"],
  ["only a NUL", "\0"],
  ["a lone high surrogate", "\ud800"],
  ["another lone surrogate", "\ud801"],
  ["what both would become in UTF-8", "\ufffd"],
  ["an escaped NUL, spelled out", "a\\u0000b"],
  ["an escaped surrogate, spelled out", "\\ud800"],
  ["a backslash", "\\"],
  ["two backslashes", "\\\\"],
  ["a backslash and a quote", '\\"'],
  ["prototype", "__proto__"],
  ["constructor", "constructor"],
  ["single quote", "'; DROP TABLE countersign_idempotency; --"],
  ["double quote", '"'],
  ["wildcards", "%_*?[a-z]"],
  ["parameters", "?1 :key @key $key"],
  ["composed", "\u00e9"],
  ["decomposed", "e\u0301"],
  ["lower case", "key"],
  ["upper case", "KEY"],
  ["trailing blank", "key "],
  ["line break", "key\r\n"],
  ["emoji", "\u{1f4b8}"],
  ["digits", "1"],
  ["digits with a point", "1.0"],
  ["longest", "x".repeat(512)],
  ["longest, all NUL", "\0".repeat(512)],
];

describe.each(drivers)("idempotency store by the engine's clock, %s", (_name, open) => {
  steadyTest("expires a lease on SQLite's clock, whatever the process thinks of the time", async () => {
    const store = createStores(connect(temporaryFile(), open)).idempotency;
    store.claim(key, claim("a", { leaseMs: 150 }));
    jest.useFakeTimers({ now: Date.now() + 600_000 });
    try {
      const result = store.claim(key, claim("b"));
      expect(result.status).toBe("in-flight");
    } finally {
      jest.useRealTimers();
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 160);
    });
    expect(store.claim(key, claim("b")).status).toBe("acquired");
    expect(store.heartbeat(key, "b", 60_000)).toBe("ok");
    const record = store.read(key);
    if (record?.state !== "run") throw new Error("not running");
    expect(record.remainingMs).toBeGreaterThan(59_000);
    expect(record.remainingMs).toBeLessThanOrEqual(60_000);
    expect(store.complete(key, "b")).toBe("ok");
    expect(store.claim(key, claim("c")).status).toBe("done");
  });

  test("is one store for all connections of a file", () => {
    const file = temporaryFile();
    const one = createStores(connect(file, open)).idempotency;
    const two = createStores(connect(file, open)).idempotency;
    expect(one.claim(key, claim("a")).status).toBe("acquired");
    expect(two.claim(key, claim("b")).status).toBe("in-flight");
    expect(two.complete(key, "a")).toBe("ok");
    expect(one.claim(key, claim("c")).status).toBe("done");
  });

  test.each([
    ["takes it", ["acquired", "in-flight"]],
    ["takes and completes it", ["acquired", "done"]],
    ["takes and holds it", ["acquired", "held"]],
  ])("decides again under the write lock when another process %s after the first look", (what, expected) => {
    const file = temporaryFile();
    const other = createStores(connect(file, open)).idempotency;
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
    const store = createStores(late).idempotency;
    first = "ready";
    const second = store.claim(key, claim("a")).status;
    expect([first, second]).toEqual(expected);
  });

  test("keeps done, held and running keys over a restart", () => {
    const file = temporaryFile();
    const before = open(file);
    const first = createStores(before).idempotency;
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
    const second = createStores(connect(file, open)).idempotency;
    expect(second.claim("paid", claim("b")).status).toBe("done");
    expect(second.claim("in doubt", claim("b"))).toMatchObject({ reason: "no answer from the bank" });
    expect(second.claim("running", claim("b")).status).toBe("in-flight");
    expect(second.claim("running", claim("a"))).toEqual(running);
  });

  test("answers duplicates of a paid key while another connection holds the write lock, and throws on a new key", () => {
    const file = temporaryFile();
    const database = connect(file, open);
    const store = createStores(database).idempotency;
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
});
