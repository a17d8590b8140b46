// A key is ended once: whoever repeats, decides or answers in between, at most one payment commits and none is forgotten.
import { once } from "node:events";
import { describe, expect, test } from "@jest/globals";
import { guardErrors } from "@countersign/express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import type { IdempotencyGuardOptions } from "@countersign/idempotency-guard";
import {
  bytesOf,
  eachTest,
  eventually,
  FakeTransaction,
  frameworks,
  listen,
  payoutGuard,
  platform,
  sleep,
  transactionalStore,
  type Handler,
  type Platform,
} from "./kit.ts";

const key = "op.a.b";
const short = { leaseMs: 1_000, storeTimeoutMs: 200, waitMs: 0 } as const;

const notices = eachTest();

describe.each(frameworks)("a handler's own transaction on %s", (_name, framework) => {
  /** Pays in a transaction whose COMMIT is executed, and its answer lost. */
  async function payAndLoseTheReply(req: Parameters<Handler>[0], payments: string[]): Promise<void> {
    const tx = new FakeTransaction();
    await req.idempotency?.completeIn(tx);
    tx.onCommit(() => void payments.push("paid"));
    tx.commit();
    throw new Error("the connection broke at COMMIT");
  }

  test("that is repeated after the answer to COMMIT was lost pays once", async () => {
    const payments: string[] = [];
    const store = transactionalStore();
    const app = await platform(framework, { ...short, store }, async (req, res) => {
      await payAndLoseTheReply(req, payments).catch(() => payAndLoseTheReply(req, payments));
      res.json({});
    });
    expect(await app.pay()).toMatchObject({ status: 503, code: "idempotency-lost" });
    expect(await app.pay()).toMatchObject({ status: 409, code: "already-processed" });
    expect(payments).toEqual(["paid"]);
    // Nobody else had the key.
    expect(notices.codes()).toEqual([]);
  });

  test("that has committed is told by committed(), and its 2xx leaves", async () => {
    const payments: string[] = [];
    const seen: unknown[] = [];
    const app = await platform(framework, { ...short, store: transactionalStore() }, async (req, res) => {
      seen.push(await req.idempotency?.committed());
      await payAndLoseTheReply(req, payments).catch(() => undefined);
      seen.push(await req.idempotency?.committed());
      res.json({});
    });
    expect((await app.pay()).status).toBe(200);
    expect((await app.pay()).status).toBe(409);
    expect({ seen, payments }).toEqual({ seen: [false, true], payments: ["paid"] });
  });

  test.each(["done", "released"] as const)(
    "is rolled back when an operator has decided %s meanwhile, with an alarm",
    async (outcome) => {
      const payments: string[] = [];
      const store = transactionalStore();
      let resolved = "";
      let reason: unknown;
      const app = await platform(framework, { ...short, store }, async (req, res) => {
        // The owner stalls: its lease ends, a retry finds that out, and the operator decides.
        const { token = "", fence = 0, signal } = req.idempotency ?? {};
        store.inner.hold(key, token, "lease-expired");
        resolved = store.inner.resolve(key, outcome, { fence });
        const tx = new FakeTransaction();
        try {
          await req.idempotency?.completeIn(tx);
          payments.push("paid");
        } finally {
          await eventually(() => signal?.aborted === true);
          reason = signal?.reason;
        }
        res.json({});
      });
      expect(await app.pay()).toMatchObject({ status: 503, code: "idempotency-lost" });
      expect({ resolved, payments }).toEqual({ resolved: "ok", payments: [] });
      expect(notices.codes()).toContain("lease-lost");
      expect(reason).toMatchObject({ code: "idempotency-lost" });
      expect(store.inner.read(key)?.state).toBe(outcome === "done" ? "done" : undefined);
    },
  );

  test("that commits while the guard waits to hold its key lets its 2xx out", async () => {
    const app = await platform(framework, { ...short, store: transactionalStore() }, async (req, res) => {
      const tx = new FakeTransaction();
      await req.idempotency?.completeIn(tx);
      setTimeout(() => tx.commit(), 40);
      res.json({ paid: true });
    });
    expect(await app.pay()).toMatchObject({ status: 200, body: '{"paid":true}' });
    expect(await app.pay()).toMatchObject({ status: 409, code: "already-processed" });
    expect(notices.codes()).toEqual([]);
  });

  test("that has committed is no loss to a handler that said hold() and fails behind it", async () => {
    const app = await platform(framework, { ...short, store: transactionalStore() }, async (req, res) => {
      const tx = new FakeTransaction();
      req.idempotency?.hold("the receipt may be out");
      await req.idempotency?.completeIn(tx);
      tx.commit();
      res.status(500).end();
    });
    expect((await app.pay()).status).toBe(500);
    expect(await app.pay()).toMatchObject({ status: 409, code: "already-processed" });
    expect(notices.codes()).toEqual([]);
  });

  test("holds the key against everybody, so that a heartbeat that does not get through is no alarm", async () => {
    const store = transactionalStore();
    const app = await platform(framework, { ...short, store, storeTimeoutMs: 100 }, async (req, res) => {
      const tx = new FakeTransaction();
      await req.idempotency?.completeIn(tx);
      store.fail("heartbeat", ...Array<"throws before">(50).fill("throws before"));
      // For longer than the lease, and than a living owner goes without trying to renew it.
      await Promise.all([sleep(1_600), eventually(() => store.calls.heartbeat > 2)]);
      tx.commit();
      res.json({ aborted: req.idempotency?.signal.aborted });
    });
    expect(await app.pay()).toMatchObject({ status: 200, body: '{"aborted":false}' });
    expect(store.calls.heartbeat).toBeGreaterThan(2);
    expect(notices.codes()).toEqual([]);
  });
});

describe.each(frameworks)("an answer in place of the handler on %s", (_name, framework) => {
  interface Seen {
    runs: number;
    /** Whether the signal of the run before had aborted when a run began. */
    readonly abortedBefore: (boolean | undefined)[];
    readonly signals: (AbortSignal | undefined)[];
    end: () => void;
  }

  /** A time-out middleware of the app stands before the guard, and answers while the handler works. */
  async function slowPlatform(
    options: Partial<IdempotencyGuardOptions>,
    answerInstead: (res: Parameters<Handler>[1], next: Parameters<Handler>[2]) => void,
    begin: (req: Parameters<Handler>[0]) => void = () => {},
  ): Promise<Platform & Seen> {
    const seen: Seen = { runs: 0, abortedBefore: [], signals: [], end: () => {} };
    const works = new Promise<void>((resolve) => (seen.end = resolve));
    const app = framework();
    app.use(bytesOf(framework), (_req, res, next) => {
      setTimeout(() => answerInstead(res, next), 40);
      next();
    });
    app.post("/pay", payoutGuard(options), (req, res) => {
      seen.runs += 1;
      seen.abortedBefore.push(seen.signals.at(-1)?.aborted);
      seen.signals.push(req.idempotency?.signal);
      begin(req);
      // Too late: whatever it says then is dropped.
      void works.then(() => res.end());
    });
    app.use(guardErrors());
    return Object.assign(await listen(app), seen);
  }

  const answers = [
    ["a time-out's 503", (res: Parameters<Handler>[1]) => void res.status(503).end()],
    ["a time-out's 408", (res: Parameters<Handler>[1]) => void res.status(408).end()],
    ["a destroyed response", (res: Parameters<Handler>[1]) => void res.destroy()],
    [
      "an error that goes to the app's own handler",
      (_res: unknown, next: Parameters<Handler>[2]) => next(new Error("late")),
    ],
  ] as const;

  test.each(answers)("%s holds the key under hold, and aborts the signal", async (_answer, answerInstead) => {
    const store = memoryIdempotencyStore();
    const app = await slowPlatform({ ...short, store }, answerInstead);
    await app.pay().catch(() => undefined);
    await eventually(() => store.read(key)?.state === "held");
    expect(app.signals.map((signal) => signal?.aborted)).toEqual([true]);
    const retry = await app.pay();
    expect(retry).toMatchObject({ status: 503, code: "held" });
    expect(app.signals).toHaveLength(1);
    app.end();
  });

  test.each(answers)("%s leaves the reason of its handler's hold()", async (_answer, answerInstead) => {
    const store = memoryIdempotencyStore();
    const app = await slowPlatform({ ...short, store }, answerInstead, (req) =>
      req.idempotency?.hold("the bank was called"),
    );
    await app.pay().catch(() => undefined);
    await eventually(() => store.read(key)?.state === "held");
    expect(store.read(key)).toMatchObject({ reason: "the bank was called" });
    app.end();
  });

  test.each(answers)(
    "%s leaves the key to its lease under rerun, after the signal aborted",
    async (_answer, answerInstead) => {
      const store = memoryIdempotencyStore();
      const app = await slowPlatform({ ...short, store, recovery: "rerun", waitMs: 0 }, answerInstead);
      await app.pay().catch(() => undefined);
      expect(store.read(key)?.state).toBe("running");
      // Nobody renews the lease: a retry takes the key once it has ended, and only then.
      await eventually(async () => {
        await app.pay().catch(() => undefined);
        return app.signals.length === 2;
      });
      expect(app.abortedBefore).toEqual([undefined, true]);
      app.end();
    },
  );

  test("is none when the client leaves: the handler goes on, and its success counts", async () => {
    const store = memoryIdempotencyStore();
    let working = false;
    const app = await platform(framework, { ...short, store }, async (req, res) => {
      working = true;
      await once(res, "close");
      res.destroy();
      res.json({ aborted: req.idempotency?.signal.aborted });
    });
    await app.payAndLeave(() => eventually(() => working));
    await eventually(() => store.read(key)?.state === "done");
  });
});
