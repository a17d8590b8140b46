import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { traces } from "@countersign/core";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import type { ErrorRequestHandler } from "express";
import {
  bytesOf,
  closePlatforms,
  eventually,
  faultyStore,
  frameworks,
  gate,
  listen,
  payoutGuard,
  platform,
  sleep,
} from "./kit.ts";

afterEach(closePlatforms);

/** Counts the duplicates that wait from now on. */
function countWaits(when: "start" | "asyncEnd" = "start"): () => number {
  let count = 0;
  const hear = (): void => void (count += 1);
  const channel = traces.wait[when];
  channel.subscribe(hear);
  afterTest(() => channel.unsubscribe(hear));
  return () => count;
}

describe.each(frameworks)("duplicates on %s", (_name, framework) => {
  test.each([
    { name: "a synchronous store", createStore: () => memoryIdempotencyStore() },
    { name: "an asynchronous store", createStore: () => faultyStore() },
  ])(
    "fault 10: 200 identical requests at once on $name run one handler, and none gets 409 before the commit",
    async ({ createStore }) => {
      let runs = 0;
      let committed = false;
      const app = await platform(framework, { store: createStore() }, async (_req, res) => {
        runs += 1;
        await sleep(150);
        committed = true;
        res.json({});
      });
      const early: number[] = [];
      const statuses = await Promise.all(
        Array.from({ length: 200 }, async () => {
          const { status } = await app.pay();
          if (!committed) early.push(status);
          return status;
        }),
      );
      expect(runs).toBe(1);
      expect(early).not.toContain(409);
      expect(statuses.filter((status) => status === 200)).toHaveLength(1);
      expect(statuses.filter((status) => status !== 200 && status !== 409 && status !== 503)).toEqual([]);
      expect((await app.pay()).status).toBe(409);
    },
  );

  test("share one reader of the store", async () => {
    const store = faultyStore();
    const app = await platform(framework, { store, pollMs: 20 }, async (_req, res) => {
      await sleep(200);
      res.json({});
    });
    await Promise.all(Array.from({ length: 40 }, () => app.pay()));
    expect(store.calls.read).toBeLessThan(20);
  });

  test("are woken at once by an owner in the same process", async () => {
    const store = faultyStore();
    const paying = gate();
    // By looking at the key it would learn too late that it is done.
    const times = { waitMs: 9_500, pollMs: 10_000 };
    const app = await platform(framework, { store, ...times }, async (_req, res) => {
      await paying.opened;
      res.json({});
    });
    const first = app.pay();
    await eventually(() => store.calls.claim === 1);
    const waits = countWaits();
    const second = app.pay();
    await eventually(() => waits() === 1);
    paying.open();
    expect((await second).status).toBe(409);
    expect((await first).status).toBe(200);
  });

  test("are woken when a claim without an answer has been given back", async () => {
    const store = faultyStore();
    store.fail("claim", "hangs after");
    const app = await platform(framework, { store, pollMs: 10_000, storeTimeoutMs: 80 }, (_req, res) =>
      res.json({}),
    );
    const first = app.pay();
    await eventually(() => store.calls.claim === 1);
    expect((await app.pay()).status).toBe(200);
    expect((await first).status).toBe(503);
  });

  test("wait no longer than waitMs in all, however often the key is free and taken again", async () => {
    const store = faultyStore();
    store.claim = () => ({ status: "in-flight", fingerprint: "f", remainingMs: 1_000 });
    store.read = () => undefined;
    const app = await platform(framework, { store, waitMs: 100, pollMs: 5 }, (_req, res) => res.json({}));
    expect(await app.pay()).toMatchObject({ status: 503, code: "in-flight" });
  });

  test("that have left are no error of anybody", async () => {
    const store = faultyStore();
    store.inner.claim("op.a.b", { token: "other", fingerprint: "f", leaseMs: 60_000, recovery: "hold" });
    const errors: unknown[] = [];
    const app = framework();
    app.use(bytesOf(framework), payoutGuard({ store, waitMs: 60_000 }));
    app.use(((error, _req, _res, next) => {
      errors.push(error);
      next(error);
    }) satisfies ErrorRequestHandler);
    const running = await listen(app);
    const ended = countWaits("asyncEnd");
    await running.payAndLeave(() => eventually(() => store.calls.read > 0));
    // Long before its 60 s.
    await eventually(() => ended() === 1);
    expect(errors).toEqual([]);
  });

  test("that have left do not run when their turn comes", async () => {
    const store = faultyStore();
    const paying = gate();
    let runs = 0;
    const app = await platform(framework, { store, waitMs: 60_000 }, async (_req, res) => {
      runs += 1;
      await paying.opened;
      res.status(500).end();
    });
    const first = app.pay();
    await eventually(() => store.calls.claim === 1);
    const waits = countWaits();
    await app.payAndLeave(() => eventually(() => waits() === 1));
    paying.open();
    expect((await first).status).toBe(500);
    await sleep(60);
    expect(runs).toBe(1);
  });

  test("outlive a store that fails while they wait", async () => {
    const store = faultyStore();
    const { inner } = store;
    inner.claim("op.a.b", { token: "other", fingerprint: "f", leaseMs: 60_000, recovery: "hold" });
    const app = await platform(framework, { store, waitMs: 60_000, storeTimeoutMs: 80 }, (_req, res) =>
      res.json({}),
    );
    store.fail("read", "throws before", "hangs before");
    const waiting = app.pay();
    await eventually(() => store.calls.read > 2);
    inner.release("op.a.b", "other");
    expect((await waiting).status).toBe(200);
  });

  test("see a key that another process freed, held or let expire", async () => {
    const store = faultyStore();
    const { inner } = store;
    const claim = { token: "other", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;
    const app = await platform(framework, { store, waitMs: 60_000 }, (_req, res) => res.json({}));
    const untilRead = (): Promise<void> => {
      const before = store.calls.read;
      return eventually(() => store.calls.read > before);
    };

    inner.claim("freed", claim);
    const freed = app.pay({ key: "freed" });
    await untilRead();
    inner.release("freed", "other");
    expect((await freed).status).toBe(200);

    inner.claim("held", claim);
    const held = app.pay({ key: "held" });
    await untilRead();
    inner.hold("held", "other", "in doubt");
    expect(await held).toMatchObject({ status: 503, code: "held" });

    inner.claim("expired", { ...claim, leaseMs: 60 });
    expect(await app.pay({ key: "expired" })).toMatchObject({ status: 503, code: "held" });
  });

  test("wait again when another process was faster", async () => {
    const store = memoryIdempotencyStore();
    const claim = { fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;
    store.claim("op.a.b", { ...claim, token: "first" });
    const inner = store.claim.bind(store);
    const read = jest.spyOn(store, "read");
    const app = await platform(framework, { store, waitMs: 60_000 }, (_req, res) => res.json({}));
    const waiting = app.pay();
    await eventually(() => read.mock.calls.length > 0);
    store.claim = (key, ours) => {
      // Between this process's look and its claim.
      void inner(key, { ...claim, token: "second" });
      return inner(key, ours);
    };
    store.release("op.a.b", "first");
    await eventually(async () => store.read("op.a.b")?.token === "second");
    store.complete("op.a.b", "second");
    expect(await waiting).toMatchObject({ status: 409, code: "idempotency-key-reused" });
  });
});
