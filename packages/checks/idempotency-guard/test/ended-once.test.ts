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
  frameworks,
  listen,
  payoutGuard,
  platform,
  type Handler,
  type Platform,
} from "./kit.ts";

const key = "op.a.b";
const short = { leaseMs: 1_000, storeTimeoutMs: 200, waitMs: 0 } as const;

eachTest();

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
