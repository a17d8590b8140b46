import { describe, expect, test } from "@jest/globals";
import type express from "express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { eachTest, eventually, faultyStore, frameworks, platform, type Fault } from "./kit.ts";

const notices = eachTest();

const key = "op.a.b";

/** Counts payments; an answer of 200 each. */
function payments(): { count: number; handler: (req: express.Request, res: express.Response) => void } {
  const paid = {
    count: 0,
    handler: (_req: express.Request, res: express.Response): void => {
      paid.count += 1;
      res.json({ paid: paid.count });
    },
  };
  return paid;
}

describe.each(frameworks)("one process on %s", (_name, framework) => {
  describe("fault 5: complete was executed, its answer is lost", () => {
    test.each<{ name: string; fault: Fault; synchronous: boolean }>([
      { name: "throws", fault: "throws after", synchronous: false },
      { name: "hangs", fault: "hangs after", synchronous: false },
      { name: "throws at once", fault: "throws after", synchronous: true },
    ])("a store that $name: 2xx, then 409", async ({ fault, synchronous }) => {
      const store = faultyStore({ synchronous });
      const paid = payments();
      const app = await platform(framework, { store, storeTimeoutMs: 40 }, paid.handler);
      store.fail("complete", fault);
      expect(await app.pay()).toMatchObject({ status: 200, body: '{"paid":1}' });
      expect((await app.pay()).status).toBe(409);
      expect(paid.count).toBe(1);
    });
  });

  describe("fault 6: complete was not executed", () => {
    test.each<{ name: string; fault: Fault; synchronous: boolean }>([
      { name: "throws", fault: "throws before", synchronous: false },
      { name: "hangs", fault: "hangs before", synchronous: false },
      { name: "throws at once", fault: "throws before", synchronous: true },
    ])("a store that $name: 503, recorded in the background, then 409", async ({ fault, synchronous }) => {
      const store = faultyStore({ synchronous });
      const paid = payments();
      const app = await platform(framework, { store, storeTimeoutMs: 40, waitMs: 20 }, paid.handler);
      store.fail("complete", fault);
      const first = await app.pay();
      expect(first.status).toBe(503);
      expect(first.headers["retry-after"]).toBe("5");
      expect(first.body).not.toContain("paid");
      const second = (await app.pay()).status;
      // A machine that is busy with other things may have recorded it by now.
      expect(store.calls.complete === 1 ? [503] : [503, 409]).toContain(second);
      await eventually(() => store.calls.complete === 2);
      await eventually(async () => (await app.pay()).status === 409);
      expect(paid.count).toBe(1);
      expect(notices.codes()).toEqual(["completion-delayed"]);
    });
  });

  test("answers 503 to a success of an attempt that was replaced, though the other one has paid", async () => {
    const store = memoryIdempotencyStore();
    const app = await platform(framework, { store }, (req, res) => {
      const { fingerprint = "" } = store.read(key) ?? {};
      store.release(key, req.idempotency?.token ?? "");
      store.claim(key, { token: "other", fingerprint, leaseMs: 9_999, recovery: "rerun" });
      store.complete(key, "other");
      res.json({ paid: true });
    });
    expect((await app.pay()).status).toBe(503);
    expect((await app.pay()).status).toBe(409);
    expect(notices.codes()).toEqual(["completion-lost"]);
  });

  test("says so when a hold() came too late for the key", async () => {
    const store = memoryIdempotencyStore();
    const app = await platform(framework, { store }, async (req, res) => {
      req.idempotency?.hold("in doubt");
      store.release(key, req.idempotency?.token ?? "");
      res.status(502).end();
    });
    expect((await app.pay()).status).toBe(502);
    expect(notices.codes()).toEqual(["hold-lost"]);
  });

  describe("the key's end is delayed by the store", () => {
    test.each<{ name: string; fault: Fault; synchronous: boolean }>([
      { name: "throws before the effect", fault: "throws before", synchronous: false },
      { name: "throws after the effect", fault: "throws after", synchronous: false },
      { name: "hangs", fault: "hangs before", synchronous: false },
      { name: "throws at once", fault: "throws before", synchronous: true },
    ])("a failure is answered though release $name, and the retry runs", async ({ fault, synchronous }) => {
      const store = faultyStore({ synchronous });
      let runs = 0;
      const app = await platform(framework, { store, storeTimeoutMs: 40 }, (_req, res) => {
        runs += 1;
        res.status(runs === 1 ? 422 : 200).json({});
      });
      store.fail("release", fault);
      expect((await app.pay()).status).toBe(422);
      expect((await app.pay()).status).toBe(200);
      expect(runs).toBe(2);
    });

    test("a hold that failed is repeated", async () => {
      const store = faultyStore();
      const app = await platform(framework, { store }, (req, res) => {
        req.idempotency?.hold("in doubt");
        res.status(502).end();
      });
      store.fail("hold", "throws before");
      expect((await app.pay()).status).toBe(502);
      await eventually(() => store.calls.hold === 2);
      expect(await app.pay()).toMatchObject({ status: 503, code: "held" });
    });
  });

  test("fault 13: a store that is down, slow and flapping never lets a handler run unclaimed", async () => {
    const store = faultyStore();
    const paid = payments();
    const app = await platform(framework, { store, storeTimeoutMs: 50 }, paid.handler);
    store.failAll("throws before");
    expect((await app.pay()).status).toBe(503);
    // Longer than this test may take.
    store.failAll(60_000);
    expect((await app.pay()).status).toBe(503);
    expect(paid.count).toBe(0);
    store.failAll("as usual");
    store.fail("claim", "throws before", "as usual", "throws before");
    expect((await app.pay()).status).toBe(503);
    expect((await app.pay()).status).toBe(200);
    expect((await app.pay()).status).toBe(503);
    expect((await app.pay()).status).toBe(409);
    expect(paid.count).toBe(1);
  });

  test.each([
    ["an unknown status", { status: "perhaps" }],
    ["nothing", undefined],
    ["null", null],
    ["a promise of nothing", Promise.resolve()],
    ["true", true],
  ])(
    "a store that answers a claim with %s is a store that failed, and the retry runs",
    async (_is, answer) => {
      const store = faultyStore();
      const { claim } = store;
      store.claim = (of, by) => {
        // It has taken the key all the same.
        void store.inner.claim(of, by);
        store.claim = claim;
        return answer as never;
      };
      const paid = payments();
      const app = await platform(framework, { store, waitMs: 0 }, paid.handler);
      expect((await app.pay()).status).toBe(503);
      expect(paid.count).toBe(0);
      await eventually(() => store.inner.read(key) === undefined);
      expect((await app.pay()).status).toBe(200);
      expect(paid.count).toBe(1);
    },
  );
});
