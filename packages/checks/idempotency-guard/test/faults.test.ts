import { describe, expect, test } from "@jest/globals";
import type express from "express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import {
  eachTest,
  eventually,
  FakeTransaction,
  faultyStore,
  frameworks,
  platform,
  sleep,
  transactionalStore,
  type Fault,
} from "./kit.ts";

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
    ])(
      "without a transaction, a store that $name: 503, recorded in the background, then 409",
      async ({ fault, synchronous }) => {
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
      },
    );

    test.each<[name: string, synchronous: boolean, completeIn: () => Promise<never>]>([
      ["throws", false, () => Promise.reject(new Error("engine down"))],
      ["hangs", false, () => new Promise(() => {})],
      [
        "throws at once",
        true,
        () => {
          throw new Error("engine down");
        },
      ],
    ])("completeIn() that %s is a 503 and no done", async (_does, synchronous, completeIn) => {
      const store = transactionalStore({ synchronous });
      store.completeIn = completeIn;
      const app = await platform(framework, { store, storeTimeoutMs: 40 }, async (req, res) => {
        await req.idempotency?.completeIn(new FakeTransaction());
        res.json({});
      });
      const answer = await app.pay();
      expect(answer.status).toBe(503);
      expect(answer.headers["retry-after"]).toBe("5");
      expect(store.inner.read(key)).toBeUndefined();
    });

    test("completeIn() hands a programmer's TypeError on", async () => {
      const store = transactionalStore({ synchronous: true });
      store.completeIn = () => {
        throw new TypeError("tx is no transaction");
      };
      const app = await platform(framework, { store }, (req) => void req.idempotency?.completeIn({}));
      expect(await app.pay()).toMatchObject({
        status: 500,
        body: expect.stringContaining("tx is no transaction"),
      });
    });
  });

  describe("completeIn", () => {
    test("lets out a 2xx that was ended inside a synchronous transaction", async () => {
      const store = transactionalStore({ synchronous: true });
      const app = await platform(framework, { store }, (req, res) => {
        const tx = new FakeTransaction();
        void req.idempotency?.completeIn(tx);
        res.json({});
        tx.commit();
      });
      expect((await app.pay()).status).toBe(200);
    });

    test.each([
      {
        name: "is rolled back later",
        end: "rollback",
        code: "held",
        rows: 0,
        notes: ["completion-delayed", "commit-not-confirmed", "held"],
      },
      {
        name: "commits later",
        end: "commit",
        code: "already-processed",
        rows: 1,
        notes: ["completion-delayed"],
      },
    ] as const)(
      "answers 503 to a 2xx inside a transaction that $name, and lets its end decide about the key",
      async ({ end, code, rows, notes }) => {
        const store = transactionalStore();
        const tx = new FakeTransaction();
        let paid = 0;
        const short = { store, waitMs: 0, storeTimeoutMs: 50 };
        const app = await platform(framework, short, async (req, res) => {
          await req.idempotency?.completeIn(tx);
          tx.onCommit(() => (paid += 1));
          res.json({ paid: true });
        });
        const answer = await app.pay();
        expect(answer.status).toBe(503);
        expect(answer.body).not.toContain("paid");
        expect(await app.pay()).toMatchObject({ status: 503, code: "in-flight" });
        tx[end]();
        await eventually(async () => (await app.pay()).code === code);
        expect(paid).toBe(rows);
        expect(store.calls).toMatchObject({ complete: 0, release: 0 });
        await eventually(() => notes.every((note) => notices.codes().includes(note)));
        expect(new Set(notices.codes())).toEqual(new Set(notes));
      },
    );

    test("answers 503 to a success of an attempt that was replaced, though the other one has paid", async () => {
      const store = transactionalStore();
      const app = await platform(framework, { store }, async (req, res) => {
        store.inner.release(key, req.idempotency?.token ?? "");
        store.inner.claim(key, { token: "other", fingerprint: "f", leaseMs: 9_999, recovery: "rerun" });
        store.inner.complete(key, "other");
        await expect(req.idempotency?.completeIn(new FakeTransaction())).rejects.toMatchObject({
          code: "idempotency-lost",
        });
        res.json({ paid: true });
      });
      expect((await app.pay()).status).toBe(503);
      expect((await app.pay()).status).toBe(409);
    });

    test("answers 503 when the commit cannot be read back", async () => {
      const store = transactionalStore();
      store.fail("read", "throws before");
      const app = await platform(framework, { store }, async (req, res) => {
        const tx = new FakeTransaction();
        await req.idempotency?.completeIn(tx);
        tx.commit();
        res.json({});
      });
      expect((await app.pay()).status).toBe(503);
      expect((await app.pay()).status).toBe(409);
    });

    test("never frees a key whose transaction committed, whatever the handler answers", async () => {
      const store = transactionalStore();
      const app = await platform(framework, { store }, async (req, res) => {
        const tx = new FakeTransaction();
        await req.idempotency?.completeIn(tx);
        tx.commit();
        res.status(500).json({ mail: "down" });
      });
      expect(await app.pay()).toMatchObject({ status: 500, body: '{"mail":"down"}' });
      expect((await app.pay()).status).toBe(409);
    });

    test("does not free the key of an open transaction after a failure: its commit wins", async () => {
      const store = transactionalStore();
      const tx = new FakeTransaction();
      let runs = 0;
      const app = await platform(framework, { store, storeTimeoutMs: 40, waitMs: 30 }, async (req, res) => {
        runs += 1;
        await req.idempotency?.completeIn(tx);
        res.status(500).json({});
      });
      expect((await app.pay()).status).toBe(500);
      expect((await app.pay()).status).toBe(503);
      tx.commit();
      expect((await app.pay()).status).toBe(409);
      await sleep(150);
      expect((await app.pay()).status).toBe(409);
      expect(runs).toBe(1);
    });
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
