// I2, lease mode: a handler behind the guard that fails has not paid, whatever the app's error handler answers.
import { guardErrors } from "@countersign/express";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { payoutEndpoint } from "countersign/payout";
import { describe, expect, test } from "@jest/globals";
import express5, { type ErrorRequestHandler, type Express, type RequestHandler } from "express";
import express4 from "express4";
import { afterTest } from "../support/runs/after-test.ts";
import { close, listen, send } from "../support/servers/http-client.ts";
import { samplePath } from "../support/signers/independent-signer.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";
import { idempotencyKey, signPayout } from "./payout-scene.ts";
import { expectWarning } from "../support/runs/expect-warning.ts";

interface Keys {
  readonly store: ReturnType<typeof memoryIdempotencyStore>;
  readonly recovery: "hold" | "rerun";
}

const payout = (idempotency: Keys): RequestHandler =>
  payoutEndpoint({
    addresses: { allow: ["127.0.0.1"] },
    signature: { keys: { "test-key": servicePublicPem }, nonces: memoryNonceStore() },
    idempotency,
  });
const once = (keys: Keys): RequestHandler =>
  idempotencyGuard({ ...keys, key: () => idempotencyKey, fingerprint: () => "f" });

type Mount = (app: Express, handler: RequestHandler, keys: Keys) => unknown;

const forms: Readonly<Record<string, Mount>> = {
  "payoutEndpoint in a route": (app, handler, keys) => app.post(samplePath, payout(keys), handler),
  "payoutEndpoint in a route of all methods": (app, handler, keys) =>
    app.route(samplePath).all(payout(keys)).post(handler),
  "payoutEndpoint with app.use, and guardErrors": (app, handler, keys) =>
    app.use(samplePath, payout(keys), handler, guardErrors()),
  "idempotencyGuard in a route": (app, handler, keys) => app.post(samplePath, once(keys), handler),
  "idempotencyGuard with app.use, and guardErrors": (app, handler, keys) =>
    app.use(once(keys)).post(samplePath, handler).use(guardErrors()),
  "idempotencyGuard with app.use, and guardErrors that hides": (app, handler, keys) =>
    app
      .use(once(keys))
      .post(samplePath, handler)
      .use(guardErrors({ hide: true })),
};

const bankFailed = new Error("the bank said no");
const fails: Readonly<Record<string, RequestHandler>> = {
  throws() {
    throw bankFailed;
  },
  "throws what is no Error"() {
    // oxlint-disable-next-line typescript/only-throw-error -- as plain JavaScript may
    throw "the bank said no";
  },
  "calls next(error) later": (_req, _res, next) => void setImmediate(() => next(bankFailed)),
  "throws in the middle of a success"(_req, res) {
    res.write("pai");
    throw bankFailed;
  },
};

const rows = Object.entries({ "express 5": express5, "express 4": express4 }).flatMap(([framework, make]) =>
  Object.entries(forms).flatMap(([form, mount]) =>
    (["hold", "rerun"] as const).map((recovery) => ({ framework, make, form, mount, recovery })),
  ),
);

describe.each(rows)("$form on $framework, under $recovery", ({ make, form, mount, recovery }) => {
  // A refusal that nothing renders, or that is hidden, is answered by the app's page: no success either.
  const heldStatus = /hides|idempotencyGuard in a route/.test(form) ? 500 : 503;

  /** What an app answers whose handler fails at first, and whose error handler says `status`. */
  async function open(status: number, fail: RequestHandler) {
    const calls = { handler: 0, paid: 0 };
    const app = make();
    const handler: RequestHandler = (req, res, next) => {
      calls.handler += 1;
      if (calls.handler === 1) return fail(req, res, next);
      calls.paid += 1;
      return void res.json({ paid: true });
    };
    mount(app, handler, { store: memoryIdempotencyStore(), recovery });
    const answerError: ErrorRequestHandler = (_error, _req, res, _next) => void res.status(status).end();
    // The second for an error that was hidden, as one page for all does.
    app.use(answerError, ((_req, res) => void res.status(status).end()) satisfies RequestHandler);
    const { server, port } = await listen(app);
    afterTest(() => close(server));
    return { calls, ask: async () => (await send(port, signPayout())).status };
  }

  test.each(Object.entries(fails))(
    "a handler that %s: no answer says paid, a retry pays or is held",
    async (what, fail) => {
      for (const status of [200, 204, 409]) {
        // oxlint-disable-next-line no-await-in-loop -- one server after the other
        const { calls, ask } = await open(status, fail);
        // oxlint-disable-next-line no-await-in-loop -- see above
        expect(await ask()).toBe(500);
        // Nobody knows whether a handler that throws has paid, nor, under rerun either, one whose success had begun.
        const isHeld = recovery === "hold" || what.includes("middle of a success");
        // oxlint-disable-next-line no-await-in-loop -- see above
        expect(await ask()).toBe(isHeld ? heldStatus : 200);
        expect(calls).toEqual(isHeld ? { handler: 1, paid: 0 } : { handler: 2, paid: 1 });
      }
      expectWarning(/^\[handler-answered-409\] .* has a handler that answers 409/);
      if (form.includes("hides")) expectWarning(/guardErrors hid an error/, 3);
    },
  );

  test("the app's refusal of an error is its answer, and under hold the key is held", async () => {
    const { calls, ask } = await open(422, fails["throws"] as RequestHandler);
    const isHeld = recovery === "hold";
    // Its error handler answers the second, a refusal, too.
    const second = isHeld ? (heldStatus === 503 ? 503 : 422) : 200;
    expect([await ask(), await ask()]).toEqual([422, second]);
    expect(calls).toEqual(isHeld ? { handler: 1, paid: 0 } : { handler: 2, paid: 1 });
    if (form.includes("hides")) expectWarning(/guardErrors hid an error: Error: "the bank said no"/);
  });

  test("behind a whole answer a throw changes nothing", async () => {
    const { calls, ask } = await open(409, (_req, res) => {
      res.json({ paid: true });
      throw bankFailed;
    });
    expect([await ask(), await ask()]).toEqual([200, 409]);
    expect(calls.handler).toBe(1);
    if (form.includes("hides")) expectWarning(/guardErrors hid an error: Error: "the bank said no"/);
  });
});

test.each([
  ["express 5", express5],
  ["express 4", express4],
])("another handler that pays for one that failed, on %s, is not paid again", async (_framework, make) => {
  const app = make();
  let paid = 0;
  app.post(samplePath, payout({ store: memoryIdempotencyStore(), recovery: "hold" }), () => {
    throw bankFailed;
  });
  const goOn: ErrorRequestHandler = (_error, _req, _res, next) => next();
  const payElsewhere: RequestHandler = (_req, res) => {
    paid += 1;
    res.json({ paid: true });
  };
  app.use(goOn, payElsewhere);
  const { server, port } = await listen(app);
  afterTest(() => close(server));
  expect((await send(port, signPayout())).status).toBe(500);
  expect((await send(port, signPayout())).status).toBe(503);
  expect(paid).toBe(1);
});

test.each([
  ["express 5", express5],
  ["express 4", express4],
])("a route of %s takes the same methods as before", async (_framework, make) => {
  const app = make();
  const pay: RequestHandler = (_req, res) => void res.json({ paid: true });
  app.post(samplePath, payout({ store: memoryIdempotencyStore(), recovery: "hold" }), pay);
  const { server, port } = await listen(app);
  afterTest(() => close(server));
  const post = signPayout();
  expect((await send(port, post)).status).toBe(200);
  expect((await send(port, post)).status).not.toBe(404);
  for (const method of ["GET", "HEAD", "PUT"]) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    expect((await send(port, { ...post, method })).status).toBe(404);
  }
});
