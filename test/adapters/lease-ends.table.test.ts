// "How an attempt of lease mode ends", site/pages/concepts/failures.md: each row at each adapter, under both recoveries.
// A usual run has Express 4 in one form.
import { AsyncResource } from "node:async_hooks";
import { request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { isGuardError } from "@countersign/core";
import { guardErrors } from "@countersign/express";
import { idempotencyHook, payoutPlugin } from "@countersign/fastify";
import { idempotentRoute, payoutRoute } from "@countersign/fetch";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore, type MemoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard, refuse, retryLater } from "@countersign/idempotency-guard";
import { payoutEndpoint } from "countersign/payout";
import { getRequestListener } from "@hono/node-server";
import { describe, expect, test } from "@jest/globals";
import express5, { type ErrorRequestHandler, type Express, type RequestHandler } from "express";
import express4 from "express4";
import { fastify, type FastifyInstance, type FastifyReply } from "fastify";
import { allowWarnings } from "../support/runs/expect-warning.ts";
import { afterTest } from "../support/runs/after-test.ts";
import { eventually } from "../support/runs/eventually.ts";
import { isWhole } from "../support/runs/share.ts";
import { close, listen, send } from "../support/servers/http-client.ts";
import { samplePath } from "../support/signers/independent-signer.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";
import { signPayout } from "./payout-scene.ts";

/** What a row's handler can do with its response, at any adapter. Its result is the handler's. */
interface Call {
  respond(status: number): unknown;
  /** Begins to respond 200 with a body whose source fails. */
  beginAndFail(): unknown;
}

interface Setting {
  readonly store: MemoryIdempotencyStore;
  readonly recovery: "hold" | "rerun";
  readonly act: (call: Call) => unknown;
  /** What the app's error handler responds to errors that are no refusal. */
  readonly errorStatus: number;
  /** Is told of each response in front of the guard. Responds, or destroys it, once the handler has begun. */
  readonly watch: (res: ServerResponse) => void;
}

type Serve = (setting: Setting) => Promise<{ readonly port: number; readonly close: () => unknown }>;

class PrinterError extends Error {}

/** Gives one page, and never ends. */
function endless(): Readable {
  const source = new Readable({ read() {} });
  source.push("the first page");
  return source;
}

/** Gives one page, and fails at the second. */
function fails(): Readable {
  let pages = 0;
  return new Readable({
    read() {
      pages += 1;
      if (pages === 1) this.push("the first page");
      else this.destroy(new PrinterError("out of paper"));
    },
  });
}

const keys = ({ store, recovery }: Setting) => ({
  store,
  recovery,
  waitMs: 0,
  leaseMs: 1_000,
  storeTimeoutMs: 200,
});
const once = (setting: Setting) => ({ ...keys(setting), key: () => "k", fingerprint: () => "f" });
const payouts = (setting: Setting) => ({
  addresses: { allow: ["127.0.0.1"] },
  signature: { keys: { "test-key": servicePublicPem }, nonces: memoryNonceStore() },
  idempotency: keys(setting),
});

const statusOf = (error: unknown, errorStatus: number): number =>
  isGuardError(error) ? error.status : errorStatus;

function callOf(res: ServerResponse, failed: (error: unknown) => void): Call {
  return {
    respond: (status) => void res.writeHead(status).end(),
    beginAndFail() {
      const pages = fails();
      pages.on("error", failed);
      pages.pipe(res);
    },
  };
}

type Mount = (
  app: Express,
  parts: {
    readonly setting: Setting;
    readonly handler: RequestHandler;
    readonly answerError: ErrorRequestHandler;
  },
) => unknown;

const mounts: Readonly<Record<string, Mount>> = {
  "in a route": (app, { setting, handler, answerError }) =>
    app.post(samplePath, idempotencyGuard(once(setting)), handler).use(answerError),
  "by app.use": (app, { setting, handler, answerError }) =>
    app
      .use(samplePath, idempotencyGuard(once(setting)))
      .post(samplePath, handler)
      .use(answerError),
  "in a router": (app, { setting, handler, answerError }) => {
    const router = express5.Router();
    router.use(idempotencyGuard(once(setting)));
    router.post(samplePath, handler);
    app.use(router).use(answerError);
  },
  "with an error handler in the route": (app, { setting, handler, answerError }) =>
    app.post(samplePath, idempotencyGuard(once(setting)), handler, answerError),
  "before a handler by app.use": (app, { setting, handler, answerError }) =>
    app.use(samplePath, idempotencyGuard(once(setting)), handler, answerError),
  "by payoutEndpoint": (app, { setting, handler, answerError }) =>
    app.post(samplePath, payoutEndpoint(payouts(setting)), handler).use(answerError),
};

const express =
  (make: typeof express5, mount: Mount): Serve =>
  async (setting) => {
    const app = make();
    app.set("env", "test");
    app.use((_req, res, next) => {
      setting.watch(res);
      next();
    });
    const handler: RequestHandler = (_req, res, next) => {
      const result = setting.act(callOf(res, next));
      // Express 4 does not look at a promise.
      // oxlint-disable-next-line promise/no-callback-in-promise -- as a wrapper of an app's does
      if (result instanceof Promise) result.catch(next);
    };
    const answerError: ErrorRequestHandler = (error, _req, res, next) => {
      if (res.headersSent) next(error);
      else res.status(statusOf(error, setting.errorStatus)).end();
    };
    mount(app, { setting, handler, answerError });
    const { server, port } = await listen(app);
    return { port, close: () => close(server) };
  };

const node: Serve = async (setting) => {
  const guard = idempotencyGuard(once(setting));
  const answerError = guardErrors();
  const { server, port } = await listen((req: IncomingMessage, res: ServerResponse) => {
    setting.watch(res);
    const failed = (error: unknown): void =>
      answerError(error, req, res, () => void (res.headersSent || res.writeHead(setting.errorStatus).end()));
    guard(req, res, async (error) => {
      try {
        if (error !== undefined) throw error;
        await setting.act(callOf(res, failed));
      } catch (thrown) {
        failed(thrown);
      }
    });
  });
  return { port, close: () => close(server) };
};

const replyCall = (reply: FastifyReply): Call => ({
  respond: (status) => reply.code(status).send(),
  beginAndFail: () => reply.type("text/plain").send(fails()),
});

const fastifyApp =
  (isPlugin: boolean): Serve =>
  async (setting) => {
    const app = fastify({ forceCloseConnections: true });
    app.addHook("onRequest", (_request, reply, next) => {
      setting.watch(reply.raw);
      next();
    });
    app.setErrorHandler((error, _request, reply) => {
      void reply.code(statusOf(error, setting.errorStatus)).send();
    });
    const handler = async (_request: unknown, reply: FastifyReply): Promise<unknown> => {
      await setting.act(replyCall(reply));
      return reply;
    };
    if (isPlugin) app.register(payoutPlugin({ url: samplePath, ...payouts(setting), handler }));
    else app.post(samplePath, { preHandler: idempotencyHook(once(setting)) }, handler);
    await app.listen({ port: 0, host: "127.0.0.1" });
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close() };
  };

const responses: Call = {
  respond: (status) => new Response(null, { status }),
  beginAndFail: () => new Response(Readable.toWeb(fails()) as ReadableStream),
};

const fetchRoute =
  (isPayout: boolean): Serve =>
  async (setting) => {
    const handler = async (): Promise<Response> => (await setting.act(responses)) as Response;
    const route = isPayout ? payoutRoute(payouts(setting), handler) : idempotentRoute(once(setting), handler);
    const listener = getRequestListener((received) => route(received, { clientAddress: "127.0.0.1" }));
    const { server, port } = await listen((req, res) => void listener(req, res));
    return { port, close: () => close(server) };
  };

const adapters: readonly { readonly adapter: string; readonly serve: Serve }[] = [
  ...Object.entries({ "express 5": express5, "express 4": express4 }).flatMap(([version, make]) =>
    Object.entries(mounts)
      .filter(([form]) => isWhole || version === "express 5" || form === "in a route")
      .map(([form, mount]) => ({
        adapter: `${version}, ${form}`,
        serve: express(make, mount),
      })),
  ),
  { adapter: "node:http", serve: node },
  { adapter: "fastify, idempotencyHook", serve: fastifyApp(false) },
  { adapter: "fastify, payoutPlugin", serve: fastifyApp(true) },
  { adapter: "fetch, idempotentRoute", serve: fetchRoute(false) },
  { adapter: "fetch, payoutRoute", serve: fetchRoute(true) },
];

interface Played extends Pick<Setting, "recovery" | "act"> {
  readonly errorStatus?: number | undefined;
  readonly meanwhile?: (res: ServerResponse) => void;
}

async function play(serve: Serve, { recovery, act, errorStatus = 500, meanwhile }: Played) {
  const store = memoryIdempotencyStore();
  let begin = (): void => {};
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const running = await serve({
    store,
    recovery,
    errorStatus,
    act(call) {
      begin();
      return act(call);
    },
    // In the context of what stands in front of the guard.
    watch: (res) => void (meanwhile && begun.then(() => setImmediate(() => meanwhile(res)))),
  });
  afterTest(running.close);
  const { status } = await send(running.port, signPayout()).catch(() => ({ status: 0 }));
  const entries = (["running", "held", "done"] as const).flatMap(
    (state) => store.list({ state, limit: 9 }).entries,
  );
  const record = entries[0]?.record;
  return { status, state: record?.state ?? "free", reason: Object(record).reason as unknown, store };
}

type End = "done" | "held" | "free";

interface Row {
  readonly how: string;
  readonly act: Setting["act"];
  readonly errorStatus?: number;
  readonly status: number;
  readonly hold: End;
  readonly rerun: End;
  /** What the operator reads of a held key. */
  readonly reason?: RegExp;
}

const throwIt = (error: unknown): never => {
  throw error;
};
const bankFailed = (): never => throwIt(new Error("the bank said no"));

const rows: readonly Row[] = [
  ...[200, 201, 204, 302, 303].map((status): Row => ({
    how: `responds ${status}`,
    act: (call) => call.respond(status),
    status,
    hold: "done",
    rerun: "done",
  })),
  {
    how: "begins to respond 200, and the body's source fails",
    act: (call) => call.beginAndFail(),
    status: 500,
    hold: "held",
    rerun: "held",
    reason: /began to respond 200/,
  },
  ...[400, 404, 422, 451].map((status): Row => ({
    how: `responds ${status}`,
    act: (call) => call.respond(status),
    status,
    hold: "free",
    rerun: "free",
  })),
  ...[408, 425, 429, 500, 503].map((status): Row => ({
    how: `responds ${status}`,
    act: (call) => call.respond(status),
    status,
    hold: "held",
    rerun: "free",
    reason: new RegExp(`\\b${status}\\b`),
  })),
  {
    how: "responds 409",
    act: (call) => call.respond(409),
    status: 500,
    hold: "held",
    rerun: "free",
    reason: /responded 409/,
  },
  {
    how: "throws refuse()",
    act: () => throwIt(refuse("no-such-account")),
    status: 400,
    hold: "free",
    rerun: "free",
  },
  {
    how: "throws retryLater()",
    act: () => throwIt(retryLater("closed")),
    status: 503,
    hold: "free",
    rerun: "free",
  },
  {
    how: "throws",
    act: bankFailed,
    status: 500,
    hold: "held",
    rerun: "free",
    reason: /threw an error \(Error\)/,
  },
  {
    how: "rejects later",
    act: async () => {
      await new Promise((resolve) => setImmediate(resolve));
      bankFailed();
    },
    status: 500,
    hold: "held",
    rerun: "free",
    reason: /threw an error \(Error\)/,
  },
];

/** An app answers a throw by its own error handler; on fetch nobody does. */
const renderedRows: readonly Row[] = [
  ...[200, 204, 303].map((errorStatus): Row => ({
    how: `throws, and an error handler responds ${errorStatus}`,
    act: bankFailed,
    errorStatus,
    status: 500,
    hold: "held",
    rerun: "free",
    reason: /threw an error \(Error\), and somebody else responded/,
  })),
  {
    how: "throws, and an error handler responds 400",
    act: bankFailed,
    errorStatus: 400,
    status: 400,
    hold: "held",
    rerun: "free",
    reason: /threw an error/,
  },
  {
    how: "throws, and an error handler responds 409",
    act: bankFailed,
    errorStatus: 409,
    status: 500,
    hold: "held",
    rerun: "free",
    reason: /threw an error/,
  },
];

describe.each(adapters)("lease mode at $adapter", ({ adapter, serve }) => {
  const all = adapter.startsWith("fetch") ? rows : [...rows, ...renderedRows];

  test.each(all.flatMap((row) => (["hold", "rerun"] as const).map((recovery) => ({ ...row, recovery }))))(
    "ends the key by the table under $recovery when its handler $how",
    async ({ act, errorStatus, status, reason, recovery, ...row }) => {
      // Of a 409, which the caller would take for "paid".
      allowWarnings(/^\[handler-answered-409\]/);
      const state = row[recovery];
      const seen = await play(serve, { act, recovery, errorStatus });
      expect({ status: seen.status, state: seen.state }).toEqual({ status, state });
      if (state === "held") expect(seen.reason).toMatch(reason ?? /^$/);
    },
  );
});

describe.each(adapters.filter(({ adapter }) => !adapter.startsWith("fetch")))(
  "a response that somebody else ends at $adapter",
  ({ serve }) => {
    const meanwhiles: readonly (readonly [string, number, NonNullable<Played["meanwhile"]>])[] = [
      ["destroyed", 0, (res) => void res.destroy()],
      ["ended with 503", 503, (res) => void res.writeHead(503).end()],
      ["ended with 408", 408, (res) => void res.writeHead(408).end()],
      ["ended with 404", 404, (res) => void res.writeHead(404).end()],
    ];

    test.each(meanwhiles)(
      "holds the key at once under hold when it is %s",
      async (how, status, meanwhile) => {
        const act = (): Promise<never> => new Promise(() => {});
        const seen = await play(serve, { recovery: "hold", act, meanwhile });
        expect(seen).toMatchObject({ status, state: "held", reason: expect.stringContaining(how) });
      },
    );

    test.each(meanwhiles)(
      "leaves the key to its lease under rerun when it is %s",
      async (_how, status, meanwhile) => {
        const act = (): Promise<never> => new Promise(() => {});
        const seen = await play(serve, { recovery: "rerun", act, meanwhile });
        expect(seen).toMatchObject({ status, state: "running" });
      },
    );

    test.each(["hold", "rerun"] as const)(
      "is completed under %s by a later success of the handler after it was destroyed",
      async (recovery) => {
        let goOn = (): void => {};
        const act = async (call: Call): Promise<void> => {
          await new Promise<void>((resolve) => (goOn = resolve));
          call.respond(200);
        };
        const seen = await play(serve, { recovery, act, meanwhile: (res) => void res.destroy() });
        expect(seen.state).toBe(recovery === "hold" ? "held" : "running");
        goOn();
        await eventually(() => seen.store.list({ state: "done", limit: 9 }).entries.length === 1);
      },
    );
  },
);

/** A connection that was opened when the process started: what it calls back has no request's context. */
const connection = new AsyncResource("CONNECTION");

const expressVersions = Object.entries({ "express 5": express5, "express 4": express4 });
const recoveries = ["hold", "rerun"] as const;
const expressPlays = expressVersions.flatMap(([version, make]) =>
  recoveries.map((recovery) => ({ version, make, recovery })),
);

describe.each(expressPlays)("a lost context on $version under $recovery", ({ make, recovery }) => {
  test("leaves a success that a callback of the handler sends done", async () => {
    const act = (call: Call): void => connection.runInAsyncScope(() => void call.respond(200));
    const serve = express(make, mounts["in a route"] as Mount);
    expect(await play(serve, { recovery, act })).toMatchObject({ status: 200, state: "done" });
  });

  test("does not free the key for a refusal that could be somebody else's", async () => {
    const act = (call: Call): void => connection.runInAsyncScope(() => void call.respond(422));
    const serve = express(make, mounts["in a route"] as Mount);
    const state = recovery === "hold" ? "held" : "running";
    expect(await play(serve, { recovery, act })).toMatchObject({ status: 422, state });
  });

  test("is found again by the handler after a middleware that lost it", async () => {
    const lose: RequestHandler = (_req, _res, next) => connection.runInAsyncScope(() => next());
    const mount: Mount = (app, { setting, handler }) =>
      app.post(samplePath, idempotencyGuard(once(setting)), lose, handler);
    const act = (call: Call): unknown => call.respond(422);
    expect(await play(express(make, mount), { recovery, act })).toMatchObject({ status: 422, state: "free" });
  });
});

interface FileRow {
  readonly how: string;
  readonly answer: (res: express5.Response) => unknown;
}

const file = fileURLToPath(import.meta.url);
const fileRows: readonly FileRow[] = [
  { how: "res.sendFile()", answer: (res) => res.sendFile(file) },
  { how: "res.download()", answer: (res) => res.download(file) },
];

/** A route of Express whose handler is `answer`. */
function answeredBy(
  make: typeof express5,
  answer: (res: express5.Response, req: express5.Request) => unknown,
): Serve {
  return express(make, (app, { setting, answerError }) => {
    const handler: RequestHandler = (req, res) => {
      void setting.act(responses);
      void answer(res, req);
    };
    app.post(samplePath, idempotencyGuard(once(setting)), handler).use(answerError);
  });
}

describe.each(expressPlays)("a file or stream on $version under $recovery", ({ make, recovery }) => {
  const act = (): void => undefined;

  test.each(fileRows)("completes the key by $how", async ({ answer }) => {
    expect(await play(answeredBy(make, answer), { recovery, act })).toMatchObject({
      status: 200,
      state: "done",
    });
  });

  test.each<FileRow>([
    { how: "res.sendFile()", answer: (res) => res.sendFile(`${file}.missing`) },
    { how: "res.download()", answer: (res) => res.download(`${file}.missing`) },
  ])("takes a missing file of $how for a throw", async ({ answer }) => {
    const state = recovery === "hold" ? "held" : "free";
    expect(await play(answeredBy(make, answer), { recovery, act })).toMatchObject({ status: 500, state });
  });

  test.each<FileRow>([
    ...fileRows.map(({ how, answer }) => ({
      how,
      answer: (res: express5.Response) => res.once("close", () => answer(res)),
    })),
    { how: "a pipe", answer: (res) => endless().pipe(res) },
  ])("holds the key, or leaves it to its lease, when the caller of $how has left", async ({ answer }) => {
    let left: AbortSignal | undefined;
    const serve = answeredBy(make, (res, req) => {
      left = req.idempotency?.signal;
      return answer(res);
    });
    const meanwhile = (res: ServerResponse): void => void res.req.socket.destroy();
    const { store, status } = await play(serve, { recovery, act, meanwhile });
    expect(status).toBe(0);
    await eventually(() => left?.aborted === true);
    const state = recovery === "hold" ? "held" : "running";
    await eventually(() => store.read("k")?.state === state);
    if (state === "held")
      expect(store.read("k")).toMatchObject({ reason: expect.stringContaining("caller had left") });
  });
});

describe.each(["hold", "rerun"] as const)("a handler that never began, under %s", (recovery) => {
  const act = (): never => bankFailed();

  test.each(Object.entries({ "express 5": express5, "express 4": express4 }))(
    "frees the key when no handler of %s matches",
    async (_version, make) => {
      const unmatched: Mount = (app, { setting }) => app.use(idempotencyGuard(once(setting)));
      expect(await play(express(make, unmatched), { recovery, act })).toMatchObject({
        status: 404,
        state: "free",
      });
    },
  );

  test.each([false, true])(
    "frees the key when a hook of Fastify fails first, plugin: %p",
    async (isPlugin) => {
      const serve: Serve = async (setting) => {
        const app = fastify({ forceCloseConnections: true });
        const fail = async (): Promise<void> => bankFailed();
        if (isPlugin) {
          app.addHook("preValidation", fail);
          app.register(
            payoutPlugin({ url: samplePath, ...payouts(setting), handler: setting.act as () => unknown }),
          );
        } else
          app.post(
            samplePath,
            { preHandler: [idempotencyHook(once(setting)), fail] },
            setting.act as () => unknown,
          );
        await app.listen({ port: 0, host: "127.0.0.1" });
        return { port: (app.server.address() as AddressInfo).port, close: () => app.close() };
      };
      expect(await play(serve, { recovery, act })).toMatchObject({ status: 500, state: "free" });
    },
  );
});

// Fastify serializes and sends after the handler has fulfilled.
const lateFailures: Readonly<Record<string, (app: FastifyInstance) => unknown>> = {
  "a BigInt": () => ({ paid: 1n }),
  "the response schema": () => ({ paid: "no number" }),
  onSend(app) {
    app.addHook("onSend", async () => bankFailed());
    return { paid: 1 };
  },
  preSerialization(app) {
    app.addHook("preSerialization", async () => bankFailed());
    return { paid: 1 };
  },
  "a serializer": (app) => {
    app.setReplySerializer(() => bankFailed());
    return { paid: 1 };
  },
};

describe.each(["hold", "rerun"] as const)("a handler of Fastify that has fulfilled, under %s", (recovery) => {
  const rowsOf = Object.keys(lateFailures).flatMap((what) =>
    [false, true].flatMap((isPlugin) =>
      [undefined, 200, 500].map((errorStatus) => ({ what, isPlugin, errorStatus })),
    ),
  );

  test.each(rowsOf)(
    "holds the key when its response fails by $what, plugin: $isPlugin, error handler: $errorStatus",
    async ({ what, isPlugin, errorStatus }) => {
      const serve: Serve = async (setting) => {
        const app = fastify({ forceCloseConnections: true });
        if (errorStatus !== undefined) {
          app.setErrorHandler((_error, _request, reply) => void reply.code(errorStatus).send());
        }
        const payload = lateFailures[what]?.(app);
        const schema = { response: { 200: { type: "object", properties: { paid: { type: "integer" } } } } };
        const handler = async (): Promise<unknown> => payload;
        if (isPlugin) app.register(payoutPlugin({ url: samplePath, ...payouts(setting), handler }));
        else {
          const preHandler = idempotencyHook(once(setting));
          app.post(
            samplePath,
            what === "the response schema" ? { preHandler, schema } : { preHandler },
            handler,
          );
        }
        await app.listen({ port: 0, host: "127.0.0.1" });
        return { port: (app.server.address() as AddressInfo).port, close: () => app.close() };
      };
      if (isPlugin && what === "the response schema") return;
      const seen = await play(serve, { recovery, act: () => undefined });
      expect(seen).toMatchObject({
        status: 500,
        state: "held",
        reason: expect.stringContaining("began to respond 200"),
      });
    },
  );
});

test("a handler of Fastify that returns its unsent reply to a caller who left keeps its key until it responds", async () => {
  const store = memoryIdempotencyStore();
  const app = fastify({ forceCloseConnections: true });
  const setting: Setting = {
    store,
    recovery: "hold",
    act: () => undefined,
    errorStatus: 500,
    watch: () => {},
  };
  let respond = (): void => {};
  let hasLeft = false;
  app.register(
    payoutPlugin({
      url: samplePath,
      ...payouts(setting),
      async handler(_request, reply) {
        reply.raw.once("close", () => (hasLeft = true));
        respond = () => void reply.code(422).send();
        return reply;
      },
    }),
  );
  await app.listen({ port: 0, host: "127.0.0.1" });
  afterTest(() => app.close());
  const { headers, body, path } = signPayout();
  const leaving = request({
    port: (app.server.address() as AddressInfo).port,
    host: "127.0.0.1",
    method: "POST",
    path,
    headers: Object.fromEntries(
      headers.flatMap((name, index) => (index % 2 === 0 ? [[name, headers[index + 1] ?? ""]] : [])),
    ),
  });
  leaving.on("error", () => {});
  leaving.end(body);
  const states = () =>
    (["running", "held", "done"] as const).filter(
      (state) => store.list({ state, limit: 9 }).entries.length > 0,
    );
  await eventually(() => states().includes("running"));
  leaving.destroy();
  await eventually(() => hasLeft);
  await new Promise((resolve) => setImmediate(resolve));
  expect(states()).toEqual(["running"]);
  respond();
  await eventually(() => states().length === 0);
});
