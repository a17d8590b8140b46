// Somebody else's answer while the claim is under way, such as a time-out's: nobody would hear of a payment that begins after it.
import { afterEach, describe, expect, test } from "@jest/globals";
import type { ErrorRequestHandler } from "express";
import { guardErrors } from "@countersign/express";
import {
  bytesOf,
  closePlatforms,
  collectNotices,
  eventually,
  faultyStore,
  frameworks,
  listen,
  payoutGuard,
} from "./kit.ts";

afterEach(closePlatforms);

describe.each(frameworks)(
  "a request that was answered before its key was claimed, on %s",
  (_name, framework) => {
    test.each(["hold", "rerun"] as const)(
      "begins no handler, and its retry pays once, under %s",
      async (recovery) => {
        const notices = collectNotices("op.a.b");
        const store = faultyStore();
        store.fail("claim", 80);
        let paid = 0;
        const app = framework();
        app.use(bytesOf(framework));
        app.use((_req, res, next) => {
          const timer = setTimeout(() => void res.status(503).json({}), 30);
          res.once("finish", () => clearTimeout(timer));
          next();
        });
        app.post("/pay", payoutGuard({ store, recovery }), (_req, res) => {
          paid += 1;
          res.end();
        });
        app.use(guardErrors());
        const platform = await listen(app);
        expect((await platform.pay()).status).toBe(503);
        await eventually(() => store.calls.release === 1);
        expect(store.inner.read("op.a.b")).toBeUndefined();
        expect(paid).toBe(0);
        expect((await platform.pay()).status).toBe(200);
        expect((await platform.pay()).status).toBe(409);
        expect(paid).toBe(1);
        expect(notices.codes()).toEqual(["answered-before-handler"]);
        notices.stop();
      },
    );
  },
);

describe.each(frameworks)("a request that cannot be taken in hand, on %s", (_name, framework) => {
  test("begins no handler, is an error, and leaves its key free", async () => {
    const store = faultyStore();
    let paid = 0;
    const app = framework();
    app.use(bytesOf(framework));
    app.use((req, _res, next) => {
      Object.defineProperty(req, "idempotency", { value: undefined, writable: false });
      next();
    });
    app.post("/pay", payoutGuard({ store }), (_req, res) => {
      paid += 1;
      res.end();
    });
    app.use(guardErrors());
    app.use(((_error, _req, res, _next) => void res.status(500).end()) satisfies ErrorRequestHandler);
    const platform = await listen(app);
    expect((await platform.pay()).status).toBe(500);
    await eventually(() => store.calls.release === 1);
    expect(store.inner.read("op.a.b")).toBeUndefined();
    expect(paid).toBe(0);
  });
});
