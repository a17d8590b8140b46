import { afterAll, describe, expect, jest, test } from "@jest/globals";
import express from "express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { steadily } from "@countersign/test-support/runs/steadily.ts";
import {
  closePlatforms,
  collectNotices as collect,
  eventually,
  faultyStore,
  platform,
  sleep,
  type Fault,
} from "./kit.ts";

afterAll(closePlatforms);

const short = { leaseMs: 1_000, storeTimeoutMs: 500 } as const;

const patienceMs = 90_000;
const concurrently = (title: string, body: () => Promise<void>): void =>
  test.concurrent(title, steadily(body), patienceMs);

// These wait for leases of a second, at the same time, each on a key and a store of its own.
describe("the lease of a running handler", () => {
  const stops: (() => void)[] = [];
  afterAll(() => stops.forEach((stop) => stop()));

  // An attempt that is repeated, or has failed, does not come to its end.
  function collectNotices(key: string): ReturnType<typeof collect> {
    const notices = collect(key);
    stops.push(notices.stop);
    return notices;
  }

  concurrently("fault 6: outlives its length while complete() is repeated in the background", async () => {
    const key = "repeated";
    const notices = collectNotices(key);
    const store = faultyStore();
    let runs = 0;
    const app = await platform(
      express,
      { ...short, store, waitMs: 0, handlerTimeoutMs: 1_000, recovery: "rerun" },
      (_req, res) => {
        runs += 1;
        res.json({});
      },
    );
    store.fail("complete", ...Array<Fault>(5).fill("throws before"));
    expect((await app.pay({ key })).status).toBe(503);
    await Promise.all([sleep(1_300), eventually(() => store.calls.heartbeat > 1)]);
    expect(await app.pay({ key })).toMatchObject({ status: 503, code: "in-flight" });
    expect(runs).toBe(1);
    expect(notices.codes()).toEqual(["completion-delayed"]);
  });

  concurrently("aborts the signal when another attempt has the key", async () => {
    const key = "taken over";
    const notices = collectNotices(key);
    const store = faultyStore();
    const app = await platform(express, { ...short, store }, async (req, res) => {
      store.inner.release(key, req.idempotency?.token ?? "");
      store.inner.claim(key, { token: "other", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" });
      await new Promise((resolve) => req.idempotency?.signal.addEventListener("abort", resolve));
      res.json({});
    });
    expect((await app.pay({ key })).status).toBe(503);
    expect(notices.codes()).toEqual(["lease-lost", "completion-lost"]);
  });

  test.concurrent.each<{ key: string; fault: Fault; times: number; synchronous: boolean }>([
    { key: "throws", fault: "throws before", times: 7, synchronous: false },
    { key: "hangs", fault: "hangs before", times: 4, synchronous: false },
    { key: "throws at once", fault: "throws before", times: 7, synchronous: true },
  ])(
    "aborts the signal when a store that $key let it expire, not before, and goes on trying",
    steadily(async ({ key, fault, times, synchronous }) => {
      const notices = collectNotices(key);
      const store = faultyStore({ synchronous });
      let claimedAtMs = 0;
      let abortedAfterMs = 0;
      const claim = store.claim.bind(store);
      store.claim = (...args) => {
        claimedAtMs = performance.now();
        return claim(...args);
      };
      const app = await platform(express, { ...short, store }, async (req, res) => {
        store.fail("heartbeat", ...Array<Fault>(times).fill(fault));
        await new Promise((resolve) => req.idempotency?.signal.addEventListener("abort", resolve));
        abortedAfterMs = performance.now() - claimedAtMs;
        await eventually(() => store.calls.heartbeat > times);
        // Nobody took the key meanwhile, so it is still this attempt's.
        res.json({});
      });
      expect((await app.pay({ key })).status).toBe(200);
      expect(abortedAfterMs).toBeGreaterThan(short.leaseMs - 10);
      expect(notices.codes()).toEqual(["lease-expired"]);
    }),
    patienceMs,
  );

  concurrently("ends under a handler that never answers, and recovery decides", async () => {
    const key = "never-answers";
    const notices = collectNotices(key);
    let storeMs = 0;
    const store = memoryIdempotencyStore({ now: () => storeMs });
    let signal: AbortSignal | undefined;
    const app = await platform(express, { ...short, store, handlerTimeoutMs: 1_000, waitMs: 0 }, (req) => {
      signal = req.idempotency?.signal;
    });
    await app.payAndLeave(() => eventually(() => signal !== undefined), { key });
    expect(await app.pay({ key })).toMatchObject({ status: 503, code: "in-flight" });
    await eventually(() => signal?.aborted === true);
    expect(notices.codes()).toEqual(["handler-timeout"]);
    // No heartbeat comes any more.
    storeMs += short.leaseMs;
    expect(await app.pay({ key })).toMatchObject({ status: 503, code: "held" });
  });

  concurrently("takes no alarm at a heartbeat that met its own completion", async () => {
    const key = "echo";
    const notices = collectNotices(key);
    const store = faultyStore();
    const app = await platform(express, { ...short, store }, async (_req, res) => {
      // The next one is then due before complete() is given up.
      await eventually(() => store.calls.heartbeat === 1);
      res.json({});
    });
    store.fail("complete", "hangs after");
    expect((await app.pay({ key })).status).toBe(200);
    expect(store.calls.heartbeat).toBeGreaterThan(1);
    expect(notices.codes()).toEqual([]);
  });
});

test("a claim that was answered after the lease may have ended is given back", async () => {
  const store = faultyStore();
  let runs = 0;
  const app = await platform(express, { store, leaseMs: 1_000, storeTimeoutMs: 900 }, (_req, res) => {
    runs += 1;
    res.json({});
  });
  const claim = store.claim.bind(store);
  store.claim = async (...args) => {
    store.claim = claim;
    const result = await claim(...args);
    // The process is stopped between the answer and the handler.
    const until = performance.now() + 1_050;
    while (performance.now() < until);
    return result;
  };
  expect((await app.pay()).status).toBe(503);
  expect(runs).toBe(0);
  expect((await app.pay()).status).toBe(200);
});

test("what may concern money becomes a process warning when nobody listens to the notices", async () => {
  const emitWarning = jest.spyOn(process, "emitWarning").mockImplementation(() => {});
  const app = await platform(express, {}, (_req, res) => void res.status(409).end());
  await app.pay();
  const calls: unknown[] = emitWarning.mock.calls;
  emitWarning.mockRestore();
  expect(calls).toEqual([
    [
      'idempotencyGuard: key "op.a.b" has a handler that answers 409, which is left to processed keys',
      { type: "CountersignWarning", code: "handler-answered-409" },
    ],
  ]);
});
