import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
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

  test("gives no live run away when its clock fails", () => {
    store.claim("k", by("a"));
    nowMs = Number.NaN;
    expect(() => store.claim("k", by("b"))).toThrow(/option now/);
    nowMs = 1;
    expect(store.claim("k", by("b"))).toMatchObject({ status: "in-flight" });
  });

  test("hands an expired run over at a claim under rerun, with a higher fence", () => {
    store.claim("k", by("a", { recovery: "rerun" }));
    nowMs = 1_000;
    expect(store.claim("k", by("b", { recovery: "rerun" }))).toEqual({
      status: "acquired",
      fence: firstFence + 1,
    });
    expect(store.heartbeat("k", "a", 1_000)).toBe("lost");
    expect(store.complete("k", "a")).toBe("lost");
    expect(store.release("k", "a")).toBe("lost");
    expect(store.hold("k", "a", "late")).toBe("lost");
    expect(store.read("k")).toMatchObject({ state: "running", token: "b", fingerprint: "print of b" });
  });

  test("lets the operator resolve an expired run, not a living one", () => {
    store.claim("k", by("a"));
    expect(store.resolve("k", "done", { fence: firstFence })).toBe("not-held");
    nowMs = 1_000;
    expect(store.resolve("k", "done", { fence: firstFence })).toBe("ok");
    expect(store.complete("k", "a")).toBe("lost");
    expect(store.resolve("absent", "done", { fence: firstFence })).toBe("not-held");
  });

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

  test("begins its fences above those of a process that was here before", () => {
    store.claim("k", by("a"));
    jest.spyOn(Date, "now").mockReturnValue(Date.UTC(2030) + 1);
    const next = memoryIdempotencyStore();
    expect(next.claim("k", by("a"))).toEqual({ status: "acquired", fence: firstFence + 1_000 });
    jest.spyOn(Date, "now").mockReturnValue(0);
    next.release("k", "a");
    expect(next.claim("k", by("a"))).toEqual({ status: "acquired", fence: firstFence + 1_001 });
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
});

describe("list()", () => {
  test.each([0, 1.5, 1_001, "10", undefined])("refuses a limit of %p", (limit) => {
    expect(() => store.list({ state: "done", limit: limit as number })).toThrow(
      /limit must be an integer from 1 to 1000/,
    );
  });

  test("fault 16: a key whose retention has ended finds its own place in a full store", () => {
    for (const key of ["x", "y", "z"]) store.claim(key, by("a"));
    store.complete("x", "a");
    nowMs += 10_000;
    expect(store.claim("x", by("b")).status).toBe("acquired");
    expect(() => store.claim("new", by("c"))).toThrow("full");
    expect(store.read("y")).toMatchObject({ state: "running", token: "a" });
  });
});
