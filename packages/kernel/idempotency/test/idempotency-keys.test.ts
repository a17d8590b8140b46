import { randomUUID } from "node:crypto";
import { describe, expect, jest, test } from "@jest/globals";
import {
  idempotencyKeys,
  memoryIdempotencyStore,
  type IdempotencyKeys,
  type OwnedKey,
} from "@countersign/idempotency";
import type { KeyAttempt } from "@countersign/idempotency/internal";
import { eventually, sleep } from "@countersign/test-support/runs/eventually.ts";
import { collectNotices, faultyStore } from "@countersign/test-support/runs/faulty-store.ts";

type IdempotencyKeysOptions = Parameters<typeof idempotencyKeys>[0];

function create(options: Partial<IdempotencyKeysOptions> = {}): IdempotencyKeys {
  return idempotencyKeys({ factory: "receiveFiles", store: memoryIdempotencyStore(), ...options });
}

function attempt(key = "k"): KeyAttempt {
  return { key, fingerprint: "f", token: randomUUID() };
}

async function own(keys: IdempotencyKeys, key?: string): Promise<OwnedKey> {
  const acquired = await keys.acquire(attempt(key));
  if (acquired.status !== "acquired") throw new Error(`not acquired: ${acquired.status}`);
  return acquired;
}

describe.each([
  { kind: "a synchronous store", store: () => memoryIdempotencyStore() },
  { kind: "an asynchronous store", store: () => faultyStore() },
])("idempotencyKeys with $kind", ({ store }) => {
  test("owns a key until it is completed, and tells the others", async () => {
    const settled: string[] = [];
    const keys = create({ store: store(), onSettled: (key) => settled.push(key) });
    const owned = await own(keys);
    expect(await keys.acquire(attempt())).toMatchObject({ status: "in-flight" });
    expect(await keys.read("k")).toMatchObject({ state: "running", fence: owned.fence });
    expect(settled).toEqual([]);
    expect(await owned.complete()).toBeUndefined();
    expect(settled).toEqual(["k"]);
    expect(await keys.acquire(attempt())).toEqual({ status: "done", fingerprint: "f" });
  });
});

test("a null of the store is an absent key", async () => {
  const nothing = null as never;
  for (const read of [() => nothing, async () => nothing]) {
    expect(await create({ store: { ...faultyStore(), read } }).read("k")).toBeUndefined();
  }
});

describe("an owned key", () => {
  test("has a signal that aborts once, for the first reason, also when it is asked for later", async () => {
    const keys = create();
    const owned = await own(keys);
    expect(owned.signal.aborted).toBe(false);
    owned.abort(new Error("too slow"));
    owned.abort(new Error("again"));
    expect(owned.signal.reason).toMatchObject({ message: "too slow" });
    const other = await own(keys, "other");
    other.abort(new Error("too slow"));
    expect(other.signal.reason).toMatchObject({ message: "too slow" });
    expect(owned.lost).toBe(false);
    expect(await owned.complete()).toBeUndefined();
  });

  test("is kept by heartbeats for as long as its owner needs, and says when it is lost", async () => {
    const notices = collectNotices("kept");
    let storeMs = 0;
    const store = memoryIdempotencyStore({ now: () => storeMs });
    const heartbeat = jest.spyOn(store, "heartbeat");
    const keys = create({ store, leaseMs: 1_000, storeTimeoutMs: 300, recovery: "rerun" });
    const owned = await own(keys, "kept");
    // By the store's clock, longer than a lease between the claim and the last heartbeat.
    for (const count of [1, 2]) {
      storeMs += 600;
      await eventually(() => heartbeat.mock.calls.length >= count);
    }
    expect(await keys.acquire(attempt("kept"))).toMatchObject({ status: "in-flight" });
    const record = store.read("kept");
    store.release("kept", record?.token ?? "");
    await eventually(() => owned.lost);
    expect(owned.signal.reason).toMatchObject({ code: "idempotency-lost" });
    expect(await owned.complete()).toEqual({ status: 503, retryAfterSeconds: 5 });
    expect(notices.codes()).toEqual(["lease-lost", "completion-lost"]);
    notices.stop();
  });

  test.each(["complete", "release"] as const)("is renewed no more after %s()", async (settle) => {
    const store = faultyStore();
    const owned = await own(create({ store, leaseMs: 1_000, storeTimeoutMs: 300 }));
    await owned[settle]();
    await sleep(450);
    expect(store.calls.heartbeat).toBe(0);
  });

  test("has a lease that counts from before its claim was sent", async () => {
    const notices = collectNotices("slow");
    const store = faultyStore({ synchronous: true });
    // Stands still unless the test moves it: nothing depends on how quick this process is.
    let nowMs = performance.now();
    const now = jest.spyOn(performance, "now").mockImplementation(() => nowMs);
    try {
      const claim = store.claim.bind(store);
      const keys = create({
        store: { ...store, claim: (...args) => ((nowMs += 900), claim(...args)) },
        leaseMs: 1_000,
        storeTimeoutMs: 300,
      });
      const { signal } = await own(keys, "slow");
      store.failAll("throws before");
      nowMs += 101;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    } finally {
      now.mockRestore();
    }
    expect(notices.codes()).toEqual(["lease-expired"]);
    notices.stop();
  });

  test("is kept by heartbeats while its release is repeated", async () => {
    const store = faultyStore();
    const keys = create({ store, leaseMs: 1_000, storeTimeoutMs: 300, recovery: "rerun" });
    const owned = await own(keys);
    store.fail("release", ...Array<"throws before">(1_000).fill("throws before"));
    await owned.release();
    await eventually(() => store.calls.heartbeat >= 5);
    // Longer than a lease by now: nobody takes what may be released late.
    expect(await keys.acquire(attempt())).toMatchObject({ status: "in-flight" });
  });
});

describe("the end of an owned key", () => {
  test.each([
    ["release", (owned: OwnedKey) => owned.release()],
    ["hold", (owned: OwnedKey) => owned.hold("the file was sent")],
  ] as const)("by %s() aborts its signal before the store is asked", async (method, end) => {
    const store = faultyStore({ synchronous: true });
    const owned = await own(create({ store }));
    const ended = end(owned);
    expect({ aborted: owned.signal.aborted, asked: store.calls[method] }).toEqual({
      aborted: true,
      asked: 0,
    });
    await ended;
    expect(store.calls[method]).toBe(1);
  });

  test("is written behind the present call stack, which may be a transaction of the store's own connection", async () => {
    const store = faultyStore({ synchronous: true });
    const owned = await own(create({ store }));
    const completed = owned.complete();
    expect(store.calls.complete).toBe(0);
    expect(await completed).toBeUndefined();
    expect(store.inner.read("k")).toMatchObject({ state: "done" });
  });
});

describe("idempotencyKeys", () => {
  test("throws a GuardError when the store does not answer a claim, and leaves none behind", async () => {
    const store = faultyStore({ synchronous: true });
    const keys = create({ store });
    store.fail("claim", "throws after");
    await expect(keys.acquire(attempt())).rejects.toMatchObject({
      status: 503,
      code: "idempotency-store-unavailable",
    });
    await eventually(() => store.inner.read("k") === undefined);
    const slow = create({
      store: { ...faultyStore(), read: () => new Promise(() => {}) },
      storeTimeoutMs: 20,
    });
    await expect(slow.read("k")).rejects.toThrow("did not answer within 20 ms");
  });

  test.each<[string, object, string]>([
    ["a store without a method", { store: { ...faultyStore(), hold: 5 } }, "option store.hold"],
    ["a lease that is too short", { leaseMs: 1 }, "option leaseMs"],
    ["another recovery", { recovery: "retry" }, "option recovery"],
    ["a handlerTimeoutMs that is too short", { handlerTimeoutMs: 1 }, "option handlerTimeoutMs"],
    ["an onSettled that is no function", { onSettled: true }, "option onSettled"],
    ["an unknown option", { lease: 5 }, "unknown option lease"],
  ])("refuses %s in the receiver's name", (_name, options, message) => {
    expect(() => create(options)).toThrow(TypeError);
    expect(() => create(options)).toThrow(`receiveFiles: ${message}`);
  });
});
