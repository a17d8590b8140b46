// I16: an app that answers all errors itself cannot say "paid" of what nobody has paid.
import type { AddressInfo } from "node:net";
import { idempotencyHook, payoutPlugin } from "@countersign/fastify";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore, type TransactionStores } from "@countersign/idempotency";
import { idempotencyGuard, refuse } from "@countersign/idempotency-guard";
import { payoutEndpoint } from "countersign/payout";
import { describe, expect, test } from "@jest/globals";
import express, { type ErrorRequestHandler, type RequestHandler } from "express";
import { fastify, type FastifyInstance } from "fastify";
import { afterTest } from "../support/runs/after-test.ts";
import { allowWarnings, expectWarning } from "../support/runs/expect-warning.ts";
import { close, listen, send, type WireRequest } from "../support/servers/http-client.ts";
import { samplePath } from "../support/signers/independent-signer.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";
import { refusalWith } from "./payments/handler-rows.ts";
import { engines, type Tx } from "./payments/engines.ts";
import { idempotencyKey, signPayout } from "./payout-scene.ts";

type Pay = () => void;
type Stores = TransactionStores<Tx>;
interface Keys {
  readonly store: ReturnType<typeof memoryIdempotencyStore>;
  readonly recovery: "hold" | "rerun";
}

const routes: Readonly<Record<string, (stores: Stores, pay: Pay) => RequestHandler>> = {
  payoutEndpoint: (stores, pay) =>
    payoutEndpoint({
      addresses: { allow: ["127.0.0.1"] },
      signature: { keys: { "test-key": servicePublicPem } },
      stores,
      pay,
      mayWriteNothing: true,
      errors: "forward",
    }),
  idempotencyGuard: (stores, handle) =>
    idempotencyGuard({ stores, scope: "pay", handle, key: () => idempotencyKey, fingerprint: () => "f" }),
};

const fail: Pay = () => {
  throw Object.assign(new Error("Unique constraint failed"), { code: "P2002" });
};
const refuses: Pay = () => {
  throw refuse("account-frozen");
};

describe.each(Object.keys(routes))("an app that answers the errors of %s", (name) => {
  const sqlite = engines.find((engine) => engine.name === "sqlite");

  /** What requests are answered, one after the other. */
  async function answers(pay: Pay, appStatus: number, count: number): Promise<readonly number[]> {
    const stores = (await sqlite?.open())?.process();
    const route = stores && routes[name]?.(stores, pay);
    if (route === undefined) throw new Error("no route");
    const app = express();
    const answerError: ErrorRequestHandler = (_error, _req, res, _next) => void res.sendStatus(appStatus);
    app.post(samplePath, route);
    app.use(answerError);
    const { server, port } = await listen(app);
    afterTest(() => close(server));
    const statuses: number[] = [];
    for (let sent = 0; sent < count; sent += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      statuses.push((await send(port, signPayout())).status);
    }
    return statuses;
  }

  test.each<[string, Pay]>([
    ["an error", fail],
    ["a refusal", refuses],
    [
      "a refusal with 409",
      () => {
        throw refusalWith(409);
      },
    ],
  ])("answers 500 where it says 200, 204 or 409 of %s", async (title, pay) => {
    expect(await answers(pay, 200, 1)).toEqual([500]);
    expect(await answers(pay, 204, 1)).toEqual([500]);
    expect(await answers(pay, 409, 1)).toEqual([500]);
    expect(await answers(pay, 422, 1)).toEqual([422]);
    if (title === "a refusal with 409") expectWarning(/^\[handler-answered-409\] .*and was rolled back$/, 4);
  });

  test("answers 409 where it says so of a done key, and 500 where it says 200", async () => {
    expect(await answers(() => undefined, 409, 2)).toEqual([200, 409]);
    expect(await answers(() => undefined, 200, 2)).toEqual([200, 500]);
    // Its handler writes nothing.
    if (name === "idempotencyGuard") expectWarning(/^\[transaction-unused\]/, 2);
  });
});

// Lease mode: the handler comes after the guard, which has claimed no key yet.
describe("an app that answers the errors in front of a claim in lease mode", () => {
  const memory = memoryIdempotencyStore;
  const endpoint = {
    addresses: { allow: ["127.0.0.1"] },
    signature: { keys: { "test-key": servicePublicPem }, nonces: memoryNonceStore() },
  };
  const fingerprint = (): never => {
    throw new Error("the app failed");
  };
  const guard = () => ({ store: memory(), key: () => idempotencyKey, fingerprint });
  const payout = () => ({ ...endpoint, idempotency: { store: memory(), fingerprint } });
  const usual = () => ({ ...endpoint, idempotency: { store: memory() } });
  const handled = { calls: 0 };
  const pay = (): void => void (handled.calls += 1);
  const withExpress = (middleware: RequestHandler) => async (appStatus: number) => {
    const app = express();
    const answerError: ErrorRequestHandler = (_error, _req, res, _next) => void res.sendStatus(appStatus);
    app.post(samplePath, middleware, pay);
    app.use(answerError);
    const { server, port } = await listen(app);
    afterTest(() => close(server));
    return port;
  };
  const withFastify = (add: (app: FastifyInstance) => unknown) => async (appStatus: number) => {
    const app = fastify({ forceCloseConnections: true });
    app.setErrorHandler((_error, _request, reply) => void reply.code(appStatus).send("failed"));
    await add(app);
    await app.listen({ port: 0, host: "127.0.0.1" });
    afterTest(() => app.close());
    return (app.server.address() as AddressInfo).port;
  };

  test.each<[string, (appStatus: number) => Promise<number>, changes: Partial<WireRequest>]>([
    ["idempotencyGuard on Express", withExpress(idempotencyGuard(guard())), {}],
    ["payoutEndpoint on Express", withExpress(payoutEndpoint(payout())), {}],
    [
      "payoutEndpoint on Express, whose refusals are forwarded",
      withExpress(payoutEndpoint({ ...usual(), errors: "forward" })),
      { headers: [] },
    ],
    [
      "payoutEndpoint on Express, whose findBusiness gives an array",
      withExpress(payoutEndpoint({ ...usual(), findBusiness: () => [] as never })),
      {},
    ],
    [
      "idempotencyHook",
      withFastify((app) => app.post(samplePath, { preHandler: idempotencyHook(guard()) }, pay)),
      {},
    ],
    [
      "payoutPlugin",
      withFastify((app) => app.register(payoutPlugin({ ...payout(), url: samplePath, handler: pay }))),
      {},
    ],
  ])("answers 500 where %s is answered 200, 204 or 409", async (_title, open, changes) => {
    const request = (): WireRequest => ({ ...signPayout(), ...changes });
    for (const status of [200, 204, 409]) {
      // oxlint-disable-next-line no-await-in-loop -- one server after the other
      expect((await send(await open(status), request())).status).toBe(500);
    }
    expect((await send(await open(422), request())).status).toBe(422);
    expect(handled.calls).toBe(0);
  });
});

// Lease mode: the key is claimed, and whoever fails then has not paid.
describe("a Fastify app that answers the errors behind a claim", () => {
  const bankFails = async (): Promise<never> => {
    throw new Error("the bank said no");
  };
  const rows: readonly {
    readonly what: string;
    readonly handle?: () => unknown;
    readonly hook?: typeof bankFails;
  }[] = [
    { what: "a handler that rejects", handle: bankFails },
    {
      what: "a handler that throws no Error",
      handle() {
        // oxlint-disable-next-line typescript/only-throw-error -- as plain JavaScript may
        throw "the bank said no";
      },
    },
    { what: "a handler that returns an Error", handle: async () => new Error("the bank said no") },
    { what: "a hook that rejects in front of the handler", hook: bankFails },
  ];
  type Mount = (app: FastifyInstance, handler: () => unknown, idempotency: Keys) => unknown;
  const forms: Readonly<Record<string, Mount>> = {
    payoutPlugin(app, handler, idempotency) {
      const signature = { keys: { "test-key": servicePublicPem }, nonces: memoryNonceStore() };
      const addresses = { allow: ["127.0.0.1"] };
      return app.register(payoutPlugin({ addresses, signature, idempotency, url: samplePath, handler }));
    },
    idempotencyHook(app, handler, idempotency) {
      const once = idempotencyHook({ ...idempotency, key: () => idempotencyKey, fingerprint: () => "f" });
      // In front of the row's hook.
      app.addHook("preValidation", once);
      return app.post(samplePath, handler);
    },
  };
  const cases = rows.flatMap((row) =>
    Object.keys(forms).flatMap((form) =>
      (["hold", "rerun"] as const).map((recovery) => ({ ...row, form, recovery })),
    ),
  );

  test.each(cases)(
    "$form answers 500 where it says 200 or 409 of $what, and a retry pays or is held, under $recovery",
    async ({ handle, hook, form, recovery }) => {
      allowWarnings(/^\[handler-answered-409\]/);
      for (const status of [200, 409]) {
        let isFailing = true;
        const app = fastify({ forceCloseConnections: true });
        afterTest(() => app.close());
        app.setErrorHandler((_error, _request, reply) => void reply.code(status).send("failed"));
        app.addHook("preHandler", async () => (isFailing ? hook?.() : undefined));
        const handler = (): unknown => (isFailing && handle !== undefined ? handle() : "paid");
        forms[form]?.(app, handler, { store: memoryIdempotencyStore(), recovery });
        // oxlint-disable-next-line no-await-in-loop -- one server after the other
        await app.listen({ port: 0, host: "127.0.0.1" });
        const { port } = app.server.address() as AddressInfo;
        // oxlint-disable-next-line no-await-in-loop -- see above
        expect((await send(port, signPayout())).status).toBe(500);
        isFailing = false;
        // A hook in front of the handler is not the handler: nothing has begun.
        const isHeld = recovery === "hold" && hook === undefined;
        // oxlint-disable-next-line no-await-in-loop -- see above
        expect((await send(port, signPayout())).status).toBe(isHeld ? 503 : 200);
      }
    },
  );
});
