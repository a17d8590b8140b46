// A key whose handler never ran waits for nobody: the claim of it is given back, or was never sent.
import { randomUUID } from "node:crypto";
import { describe, expect, jest, test } from "@jest/globals";
import { idempotencyKeys } from "@countersign/idempotency";
import { eventually, sleep } from "@countersign/test-support/runs/eventually.ts";
import { collectNotices, faultyStore } from "@countersign/test-support/runs/faulty-store.ts";

type IdempotencyKeysOptions = Parameters<typeof idempotencyKeys>[0];

function create(options: Pick<IdempotencyKeysOptions, "store" | "recovery" | "leaseMs">) {
  return idempotencyKeys({ factory: "receiveFiles", leaseMs: 1_000, storeTimeoutMs: 30, ...options });
}

function attempt(key: string) {
  return { key, fingerprint: "f", token: randomUUID() };
}

describe("claims that a slow store answers too late", () => {
  test("are refused unsent where they could not be given back, and leave no key behind", async () => {
    const store = faultyStore();
    const keys = create({ store, recovery: "hold" });
    store.fail("claim", ...Array<number>(2_000).fill(120));
    store.failAll("throws before");
    const outcomes = await Promise.allSettled(
      Array.from({ length: 3_000 }, async (_, index) => keys.acquire(attempt(`k${index}`))),
    );
    expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
    expect(store.calls.claim).toBe(2_000);
    const reasons = outcomes.map((outcome) => (outcome.status === "rejected" ? outcome.reason : undefined));
    expect(reasons.every((reason) => reason?.status === 503)).toBe(true);
    expect(reasons.filter((reason) => /too many claims/.test(String(reason?.cause)))).toHaveLength(1_000);
    // The claims are executed now, and nobody heard of it.
    await eventually(() => keysIn(store, "running").length === 2_000);
    // After the ends of their leases some keys come again, and are held.
    await sleep(1_100);
    for (const key of keysIn(store, "running").slice(0, 50)) {
      store.inner.claim(key, { ...attempt(key), leaseMs: 1_000, recovery: "hold" });
    }
    expect(keysIn(store, "held")).toHaveLength(50);
    store.failAll("as usual");
    await eventually(() => keysIn(store, "running").length + keysIn(store, "held").length === 0);
    // There is room again.
    expect(await keys.acquire(attempt("next"))).toMatchObject({ status: "acquired" });
  });

  test("are given back out of the hands of the operator, too, who has nothing to decide", async () => {
    const store = faultyStore();
    const keys = create({ store, recovery: "hold" });
    store.fail("claim", "hangs after");
    store.fail("release", ...Array<"throws before">(5).fill("throws before"));
    await expect(keys.acquire(attempt("k"))).rejects.toMatchObject({
      code: "idempotency-store-unavailable",
    });
    await sleep(1_050);
    const retry = { ...attempt("k"), leaseMs: 1_000, recovery: "hold" } as const;
    expect(store.inner.claim("k", retry)).toMatchObject({ status: "held", reason: "lease-expired" });
    await eventually(() => store.inner.read("k") === undefined);
    expect(store.calls.release).toBeGreaterThan(5);
    // And nobody takes it for a person's decision.
    expect(store.inner.readReleased("k")?.decision).toMatchObject({
      outcome: "released",
      by: "countersign",
      reason: "lease-expired",
    });
  });

  test("keep their place for an hour at most when the answer never comes", async () => {
    const store = faultyStore();
    const keys = create({ store, recovery: "rerun" });
    const realNow = performance.now.bind(performance);
    let aheadMs = 0;
    const now = jest.spyOn(performance, "now").mockImplementation(() => realNow() + aheadMs);
    try {
      store.fail("claim", "hangs before");
      await expect(keys.acquire(attempt("k"))).rejects.toMatchObject({ status: 503 });
      await sleep(300);
      expect(await keys.drain({ timeoutMs: 1 })).toMatchObject({ claims: 1 });
      aheadMs = 3_600_000;
      expect(await keys.drain({ timeoutMs: 10_000 })).toMatchObject({ claims: 0 });
    } finally {
      now.mockRestore();
    }
  });

  test("are looked for until the store has denied them several times", async () => {
    const store = faultyStore();
    const keys = create({ store, recovery: "hold", leaseMs: 60_000 });
    const late = attempt("k");
    store.fail("claim", "throws before");
    await expect(keys.acquire(late)).rejects.toMatchObject({ status: 503 });
    await eventually(() => store.calls.release === 2);
    store.inner.claim("k", { ...late, leaseMs: 60_000, recovery: "hold" });
    await eventually(() => store.inner.read("k") === undefined);
  });

  test("are looked for once more when a lease has passed since they were given up for good", async () => {
    const store = faultyStore();
    const keys = create({ store, recovery: "hold" });
    const late = attempt("k");
    store.fail("claim", "throws before");
    await expect(keys.acquire(late)).rejects.toMatchObject({ status: 503 });
    await eventually(async () => (await keys.drain({ timeoutMs: 1 })).claims === 0);
    // The driver had a time-out of its own, and the line was stalled.
    store.inner.claim("k", { ...late, leaseMs: 1_000, recovery: "hold" });
    // The look itself may fail.
    store.fail("release", "throws before");
    await eventually(() => store.inner.read("k") === undefined);
  });

  test("are looked for at least three times a lease, for as long as their answer is due", async () => {
    jest.useFakeTimers({ doNotFake: ["nextTick", "queueMicrotask"] });
    try {
      const store = faultyStore();
      const keys = create({ store, recovery: "hold", leaseMs: 3_000 });
      store.fail("claim", "hangs before");
      const refused = expect(keys.acquire(attempt("k"))).rejects.toMatchObject({ status: 503 });
      await jest.advanceTimersByTimeAsync(10_000);
      await refused;
      const before = store.calls.release;
      await jest.advanceTimersByTimeAsync(30_000);
      expect(store.calls.release - before).toBeGreaterThanOrEqual(29);
    } finally {
      jest.useRealTimers();
    }
  });

  test("never end a key that an owner has held, or that is another attempt's", async () => {
    const store = faultyStore();
    const keys = create({ store, recovery: "hold" });
    const other = attempt("k");
    store.inner.claim("k", { ...other, leaseMs: 60_000, recovery: "hold" });
    store.inner.hold("k", other.token, "the bank did not answer");
    store.fail("claim", "throws after");
    await expect(keys.acquire(attempt("k"))).rejects.toMatchObject({ status: 503 });
    await eventually(() => store.calls.release > 0);
    await sleep(20);
    expect(store.inner.read("k")).toMatchObject({ state: "held", token: other.token });
  });
});

function keysIn({ inner }: ReturnType<typeof faultyStore>, state: "running" | "held"): string[] {
  const keys: string[] = [];
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = inner.list({ state, cursor, limit: 1_000 });
    keys.push(...page.entries.map(({ key }) => key));
    cursor = page.cursor;
  }
  return keys;
}

describe("drain", () => {
  test("waits for the handlers, begins nothing new, and reports that nothing is left", async () => {
    const keys = create({ store: faultyStore() });
    const owned = await keys.acquire(attempt("k"));
    if (owned.status !== "acquired") throw new Error("the key must be free");
    const drained = keys.drain({ timeoutMs: 5_000 });
    await expect(async () => keys.acquire(attempt("other"))).rejects.toMatchObject({
      status: 503,
      code: "draining",
      headers: { "Retry-After": "5" },
    });
    await owned.complete();
    expect(await drained).toEqual({ keys: 0, claims: 0 });
  });

  test("records at once what the store did not take before, so that no paid key stays in run", async () => {
    const store = faultyStore();
    const keys = create({ store });
    const owned = await keys.acquire(attempt("k"));
    if (owned.status !== "acquired") throw new Error("the key must be free");
    store.fail("complete", ...Array<"throws before">(9).fill("throws before"));
    const notices = collectNotices("k");
    expect(await owned.complete()).toMatchObject({ status: 503 });
    expect(store.inner.read("k")).toMatchObject({ state: "running" });
    // With the pauses between attempts alone it would take 25 seconds.
    expect(await keys.drain({ timeoutMs: 5_000 })).toEqual({ keys: 0, claims: 0 });
    expect(store.inner.read("k")).toMatchObject({ state: "done" });
    expect(notices.codes()).toEqual(["completion-delayed"]);
    notices.stop();
  });

  test("gives up in time, and says what is left", async () => {
    const store = faultyStore();
    const keys = create({ store });
    await keys.acquire(attempt("running"));
    store.fail("claim", "hangs after");
    await expect(keys.acquire(attempt("lost"))).rejects.toMatchObject({ status: 503 });
    expect(await keys.drain({ timeoutMs: 60 })).toEqual({ keys: 1, claims: 1 });
  });

  test.each([0, 1.5, "10", 3_600_001])("refuses the time-out %p", async (timeoutMs) => {
    const keys = create({ store: faultyStore() });
    await expect(keys.drain({ timeoutMs: timeoutMs as number })).rejects.toThrow(/drain: option timeoutMs/);
  });
});
