import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { leaseExpired } from "@countersign/idempotency/store";
import {
  memoryIdempotencyStore,
  type IdempotencyClaim,
  type MemoryIdempotencyStore,
} from "@countersign/idempotency";

const nodeEnv = process.env["NODE_ENV"];
afterEach(() => {
  jest.restoreAllMocks();
  process.env["NODE_ENV"] = nodeEnv;
});

let nowMs: number;
let store: MemoryIdempotencyStore;
// The first fence of a store: the time of day in microseconds.
const firstFence = Date.UTC(2030) * 1_000;
beforeEach(() => {
  jest.spyOn(Date, "now").mockReturnValue(Date.UTC(2030));
  nowMs = 0;
  store = memoryIdempotencyStore({ max: 3, retentionMs: 10_000, now: () => nowMs });
});

const by = (token: string, more: Partial<IdempotencyClaim> = {}): IdempotencyClaim => ({
  token,
  fingerprint: `print of ${token}`,
  leaseMs: 1_000,
  recovery: "hold",
  ...more,
});

describe("memoryIdempotencyStore", () => {
  test.each([
    { name: "max 0", options: { max: 0 }, message: "memoryIdempotencyStore: option max" },
    { name: "max 1.5", options: { max: 1.5 }, message: "memoryIdempotencyStore: option max" },
    {
      name: "retentionMs 0",
      options: { retentionMs: 0 },
      message: "memoryIdempotencyStore: option retentionMs",
    },
    { name: "a clock that is none", options: { now: 5 }, message: "memoryIdempotencyStore: option now" },
    { name: "an unknown option", options: { ttl: 5 }, message: "memoryIdempotencyStore: unknown option ttl" },
    {
      name: "allowInProduction as text",
      options: { allowInProduction: "yes" },
      message: "allowInProduction",
    },
  ])("refuses $name", ({ options, message }) => {
    expect(() => memoryIdempotencyStore(options as object)).toThrow(message);
  });

  test("refuses to run in production unless told", () => {
    process.env["NODE_ENV"] = "production";
    expect(() => memoryIdempotencyStore()).toThrow(TypeError);
    expect(memoryIdempotencyStore({ allowInProduction: true })).toBeDefined();
  });

  test("warns of production by its first claim", () => {
    process.env["NODE_ENV"] = "production";
    const warn = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const made = memoryIdempotencyStore({ allowInProduction: true });
    for (const key of ["k", "l"]) expect(made.claim(key, by("a"))).toMatchObject({ status: "acquired" });
    expect(warn.mock.calls).toEqual([
      [expect.stringMatching(/^memoryIdempotencyStore: /), { code: "memory-store" }],
    ]);
    warn.mockRestore();
  });

  test("gives a key to one token until its lease ends", () => {
    expect(store.claim("k", by("a"))).toEqual({ status: "acquired", fence: firstFence });
    nowMs = 999;
    expect(store.claim("k", by("b"))).toEqual({
      status: "in-flight",
      fingerprint: "print of a",
      remainingMs: 1,
    });
    expect(store.read("k")).toEqual({
      state: "run",
      token: "a",
      fence: firstFence,
      fingerprint: "print of a",
      remainingMs: 1,
    });
  });

  test("gives no live run away when its clock fails", () => {
    store.claim("k", by("a"));
    nowMs = Number.NaN;
    expect(() => store.claim("k", by("b"))).toThrow(/option now/);
    nowMs = 1;
    expect(store.claim("k", by("b"))).toMatchObject({ status: "in-flight" });
  });

  test("answers the same token again, with the same fence and a new lease", () => {
    store.claim("k", by("a"));
    nowMs = 5_000;
    expect(store.claim("k", by("a"))).toEqual({ status: "acquired", fence: firstFence });
    expect(store.read("k")).toMatchObject({ remainingMs: 1_000 });
  });

  test("holds an expired run at a claim under hold, and keeps it for its late owner", () => {
    store.claim("k", by("a"));
    nowMs = 1_000;
    expect(store.claim("k", by("b"))).toEqual({
      status: "held",
      fingerprint: "print of a",
      reason: leaseExpired,
    });
    expect(store.read("k")).toEqual({
      state: "held",
      token: "a",
      fence: firstFence,
      fingerprint: "print of a",
      reason: leaseExpired,
    });
    expect(store.claim("k", by("a"))).toMatchObject({ status: "held" });
    expect(store.heartbeat("k", "a", 1_000)).toBe("lost");
    expect(store.release("k", "a")).toBe("lost");
    expect(store.complete("k", "b")).toBe("lost");
    expect(store.complete("k", "a")).toBe("ok");
    expect(store.claim("k", by("b"))).toEqual({ status: "done", fingerprint: "print of a" });
  });

  test("hands an expired run over at a claim under rerun, with a higher fence", () => {
    store.claim("k", by("a"));
    nowMs = 1_000;
    expect(store.claim("k", by("b", { recovery: "rerun" }))).toEqual({
      status: "acquired",
      fence: firstFence + 1,
    });
    expect(store.heartbeat("k", "a", 1_000)).toBe("lost");
    expect(store.complete("k", "a")).toBe("lost");
    expect(store.release("k", "a")).toBe("lost");
    expect(store.hold("k", "a", "late")).toBe("lost");
    expect(store.read("k")).toMatchObject({ state: "run", token: "b", fingerprint: "print of b" });
  });

  test("renews a lease by heartbeat, also an expired one that nobody took", () => {
    store.claim("k", by("a"));
    nowMs = 5_000;
    expect(store.heartbeat("k", "a", 700)).toBe("ok");
    expect(store.read("k")).toMatchObject({ state: "run", remainingMs: 700 });
    expect(store.heartbeat("k", "b", 700)).toBe("lost");
    expect(store.heartbeat("other", "a", 700)).toBe("lost");
  });

  test("completes for the owner alone, any number of times", () => {
    store.claim("k", by("a"));
    expect(store.complete("k", "b")).toBe("lost");
    expect(store.complete("k", "a")).toBe("ok");
    expect(store.complete("k", "a")).toBe("ok");
    expect(store.complete("k", "b")).toBe("lost");
    expect(store.complete("absent", "a")).toBe("lost");
    expect(store.read("k")).toEqual({
      state: "done",
      token: "a",
      fence: firstFence,
      fingerprint: "print of a",
    });
    expect(store.release("k", "a")).toBe("lost");
    expect(store.hold("k", "a", "late")).toBe("lost");
    expect(store.resolve("k", "released", { fence: firstFence })).toBe("not-held");
  });

  test("releases for the owner alone, and the next fence is higher", () => {
    store.claim("k", by("a"));
    expect(store.release("k", "b")).toBe("lost");
    expect(store.release("k", "a")).toBe("ok");
    expect(store.release("k", "a")).toBe("lost");
    expect(store.read("k")).toBeUndefined();
    expect(store.claim("k", by("b"))).toEqual({ status: "acquired", fence: firstFence + 1 });
  });

  test.each([
    { outcome: "done", next: { status: "done", fingerprint: "print of a" } },
    { outcome: "released", next: { status: "acquired", fence: firstFence + 1 } },
  ] as const)("lets the operator resolve a held key as $outcome", ({ outcome, next }) => {
    store.claim("k", by("a"));
    expect(store.hold("k", "a", "bank timed out")).toBe("ok");
    expect(store.claim("k", by("b"))).toEqual({
      status: "held",
      fingerprint: "print of a",
      reason: "bank timed out",
    });
    expect(store.resolve("k", outcome, { fence: firstFence })).toBe("ok");
    expect(store.resolve("k", outcome, { fence: firstFence })).toBe("not-held");
    expect(store.claim("k", by("b"))).toEqual(next);
  });

  test("lets the operator resolve an expired run, not a living one", () => {
    store.claim("k", by("a"));
    expect(store.resolve("k", "done", { fence: firstFence })).toBe("not-held");
    nowMs = 1_000;
    expect(store.resolve("k", "done", { fence: firstFence })).toBe("ok");
    expect(store.complete("k", "a")).toBe("lost");
    expect(store.resolve("absent", "done", { fence: firstFence })).toBe("not-held");
  });

  test.each(["done", "released"] as const)(
    "resolves as %s only the attempt with the fence of the decision",
    (outcome) => {
      store.claim("k", by("a"));
      nowMs = 1_000;
      store.claim("k", by("b", { recovery: "rerun" }));
      expect(store.resolve("k", outcome, { fence: firstFence })).toBe("not-held");
      nowMs = 2_000;
      for (const fence of [firstFence, firstFence + 2, 0]) {
        expect(store.resolve("k", outcome, { fence })).toBe("not-held");
      }
      store.hold("k", "b", "in doubt");
      expect(store.resolve("k", outcome, { fence: firstFence })).toBe("not-held");
      expect(store.read("k")).toMatchObject({ state: "held", token: "b", fence: firstFence + 1 });
      expect(store.resolve("k", outcome, { fence: firstFence + 1 })).toBe("ok");
    },
  );

  test("counts what an operator released against max for as long as it is kept, and tells prune of none", () => {
    for (const key of ["k1", "k2", "k3"]) {
      store.claim(key, by("a"));
      store.hold(key, "a", "in doubt");
      expect(store.resolve(key, "released", { fence: store.read(key)?.fence ?? 0 })).toBe("ok");
    }
    expect(() => store.claim("k4", by("b"))).toThrow(/full/);
    expect(store.claim("k1", by("b"))).toMatchObject({ status: "acquired" });
    nowMs = 10_000;
    expect(store.claim("k4", by("b"))).toMatchObject({ status: "acquired" });
    expect(store.readReleased("k2")).toBeUndefined();
    expect(store.prune()).toBe(0);
  });

  test("gives decisions the time of day by its own clock, which begins with the process", () => {
    const ofDay = memoryIdempotencyStore();
    ofDay.claim("k", by("a"));
    ofDay.hold("k", "a", "in doubt");
    ofDay.resolve("k", "done", { fence: firstFence });
    const at = ofDay.read("k")?.decision?.at ?? 0;
    expect(at).toBeGreaterThanOrEqual(Math.floor(performance.timeOrigin));
    expect(at).toBeLessThanOrEqual(Math.ceil(performance.timeOrigin + performance.now()));
  });

  test.each([undefined, null])("refuses the decision %p", (decision) => {
    store.claim("k", by("a"));
    store.hold("k", "a", "in doubt");
    expect(() => store.resolve("k", "done", decision as never)).toThrow(/a decision needs \{ fence \}/);
    expect(store.read("k")).toMatchObject({ state: "held" });
  });

  test.each([
    { state: "held", outcome: "done" },
    { state: "held", outcome: "released" },
    { state: "expired", outcome: "done" },
    { state: "expired", outcome: "released" },
  ] as const)("leaves nothing to end to the owner of a $state key resolved as $outcome", (row) => {
    store.claim("k", by("a"));
    if (row.state === "held") store.hold("k", "a", "in doubt");
    nowMs = 1_000;
    expect(store.resolve("k", row.outcome, { fence: firstFence })).toBe("ok");
    const before = store.read("k");
    expect(store.heartbeat("k", "a", 1_000)).toBe("lost");
    expect(store.complete("k", "a")).toBe("lost");
    expect(store.release("k", "a")).toBe("lost");
    expect(store.hold("k", "a", "late")).toBe("lost");
    expect(store.read("k")).toEqual(before);
    const nobody: unknown = expect.stringMatching(/^[\da-f-]{36}$/);
    const reason = row.state === "held" ? "in doubt" : leaseExpired;
    const decision = { outcome: "done", fence: firstFence, at: 1_000, reason };
    const done = { state: "done", token: nobody, fence: firstFence, fingerprint: "print of a", decision };
    expect(before).toEqual(row.outcome === "done" ? done : undefined);
  });

  test.each(["rerun", "hold"] as const)(
    "leaves a dead owner one lease when its clock is set back: %s",
    (recovery) => {
      nowMs = 3_600_000;
      store.claim("k", by("a"));
      nowMs = 0;
      const inFlight = { status: "in-flight", fingerprint: "print of a", remainingMs: 1_000 };
      expect(store.claim("k", by("b", { recovery }))).toEqual(inFlight);
      expect(store.read("k")).toMatchObject({ state: "run", token: "a", remainingMs: 1_000 });
      // A claim that waits no longer than the owner itself has, leaves the lease alone.
      nowMs = 400;
      expect(store.claim("k", by("b", { recovery }))).toMatchObject({ remainingMs: 600 });
      nowMs = 1_000;
      const status = recovery === "rerun" ? "acquired" : "held";
      expect(store.claim("k", by("b", { recovery }))).toMatchObject({ status });
    },
  );

  test("begins its fences above those of a process that was here before", () => {
    store.claim("k", by("a"));
    jest.spyOn(Date, "now").mockReturnValue(Date.UTC(2030) + 1);
    const next = memoryIdempotencyStore();
    expect(next.claim("k", by("a"))).toEqual({ status: "acquired", fence: firstFence + 1_000 });
    jest.spyOn(Date, "now").mockReturnValue(0);
    next.release("k", "a");
    expect(next.claim("k", by("a"))).toEqual({ status: "acquired", fence: firstFence + 1_001 });
  });

  test("fault 18: remembers a done key until the retention has passed, read or not", () => {
    store.claim("k", by("a"));
    nowMs = 3_000;
    store.complete("k", "a");
    nowMs = 12_999;
    expect(store.prune()).toBe(0);
    expect(store.claim("k", by("b"))).toMatchObject({ status: "done" });
    nowMs = 13_000;
    expect(store.read("k")).toBeUndefined();
    expect(store.prune()).toBe(1);
    expect(store.prune()).toBe(0);
    expect(store.claim("k", by("b"))).toMatchObject({ status: "acquired", fence: firstFence + 1 });
  });

  test("takes a key whose retention has ended without a prune", () => {
    store.claim("k", by("a"));
    store.complete("k", "a");
    nowMs = 10_000;
    expect(store.claim("k", by("b"))).toMatchObject({ status: "acquired" });
    expect(store.complete("k", "a")).toBe("lost");
    expect(store.read("k")).toMatchObject({ state: "run", token: "b" });
    expect(store.prune()).toBe(0);
  });

  test("never prunes a run or a held key", () => {
    store.claim("run", by("a"));
    store.claim("held", by("b"));
    store.hold("held", "b", "in doubt");
    nowMs = 1_000_000_000;
    expect(store.prune()).toBe(0);
    expect(store.read("run")).toMatchObject({ state: "run" });
    expect(store.read("held")).toMatchObject({ state: "held" });
  });

  test("fault 16: refuses a new key when full, and evicts nothing alive", () => {
    store.claim("run", by("a"));
    store.claim("held", by("b"));
    store.hold("held", "b", "in doubt");
    store.claim("done", by("c"));
    store.complete("done", "c");
    expect(() => store.claim("new", by("d"))).toThrow("full (3 keys)");
    expect(store.claim("done", by("d"))).toMatchObject({ status: "done" });
    expect(store.claim("held", by("d"))).toMatchObject({ status: "held" });
    expect(store.claim("run", by("d"))).toMatchObject({ status: "in-flight" });
    expect(store.heartbeat("run", "a", 1_000)).toBe("ok");
    nowMs = 10_000;
    expect(store.claim("new", by("d"))).toMatchObject({ status: "acquired" });
    expect(() => store.claim("newer", by("e"))).toThrow("full");
    expect(store.release("run", "a")).toBe("ok");
    expect(store.claim("newer", by("e"))).toMatchObject({ status: "acquired" });
  });

  test.each<{ name: string; call: () => unknown }>([
    { name: "claim", call: () => store.claim("k", by("a")) },
    { name: "read", call: () => store.read("k") },
    { name: "heartbeat", call: () => store.heartbeat("k", "a", 1) },
    { name: "complete", call: () => store.complete("k", "a") },
    { name: "release", call: () => store.release("k", "a") },
    { name: "hold", call: () => store.hold("k", "a", "r") },
    { name: "resolve", call: () => store.resolve("k", "done", { fence: firstFence }) },
    { name: "prune", call: () => store.prune() },
  ])("throws at $name after close", ({ call }) => {
    store.close();
    expect(call).toThrow("closed");
  });

  test("runs on the monotonic clock of the process by default", () => {
    const real = memoryIdempotencyStore();
    real.claim("k", by("a"));
    expect(real.read("k")).toMatchObject({ state: "run" });
    real.complete("k", "a");
    expect(real.read("k")).toMatchObject({ state: "done" });
  });
});

describe("list()", () => {
  test("gives the keys of one state page by page, as read() gives them", () => {
    const wide = memoryIdempotencyStore({ now: () => 0 });
    for (const key of ["d", "b", "a", "c", "held", "run"]) wide.claim(key, by("a"));
    for (const key of ["d", "b", "a", "c"]) wide.complete(key, "a");
    wide.hold("held", "a", "why");
    const first = wide.list({ state: "done", limit: 3 });
    expect(first.entries.map(({ key }) => key)).toEqual(["a", "b", "c"]);
    expect(first.entries[0]?.record).toEqual(wide.read("a"));
    const second = wide.list({ state: "done", cursor: first.cursor, limit: 3 });
    expect(second).toEqual({ entries: [{ key: "d", record: wide.read("d") }], cursor: undefined });
    expect(wide.list({ state: "held", limit: 1 })).toEqual({
      entries: [{ key: "held", record: wide.read("held") }],
      cursor: undefined,
    });
    expect(wide.list({ state: "run", limit: 10 }).entries).toHaveLength(1);
  });

  test.each([0, 1.5, 1_001, "10", undefined])("refuses a limit of %p", (limit) => {
    expect(() => store.list({ state: "done", limit: limit as number })).toThrow(/option limit must be/);
  });

  test("leaves out what has ended, and throws after close", () => {
    store.claim("k", by("a"));
    store.complete("k", "a");
    expect(store.list({ state: "done", limit: 10 }).entries).toHaveLength(1);
    nowMs += 10_000;
    expect(store.list({ state: "done", limit: 10 })).toEqual({ entries: [], cursor: undefined });
    store.close();
    expect(() => store.list({ state: "done", limit: 10 })).toThrow("closed");
  });

  test("fault 16: a key whose retention has ended finds its own place in a full store", () => {
    for (const key of ["x", "y", "z"]) store.claim(key, by("a"));
    store.complete("x", "a");
    nowMs += 10_000;
    expect(store.claim("x", by("b")).status).toBe("acquired");
    expect(() => store.claim("new", by("c"))).toThrow("full");
    expect(store.read("y")).toMatchObject({ state: "run", token: "a" });
  });
});
