import { randomUUID } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { connect } from "node:net";
import {
  hook,
  idempotencyHook,
  idempotencyOf,
  payoutPlugin,
  receivedRequest,
  refusal,
  webhookPlugin,
} from "@countersign/fastify";
import type { ConnectionOptions } from "../dist/received-request.js";
import { memoryAnswerStore, memoryIdempotencyStore } from "@countersign/idempotency";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { basicAuthVerifier } from "@countersign/webhook-basic-auth";
import { createWebhookHandler } from "countersign/webhooks";
import { describe, expect, jest, test } from "@jest/globals";
import { fastify, type FastifyInstance, type FastifyRequest, type FastifyServerOptions } from "fastify";
import { send, type WireAnswer, type WireRequest } from "@countersign/test-support/servers/http-client.ts";
import { deliver, hookPath, secret } from "../../../../test/adapters/webhook-scene.ts";
import { signPayout } from "../../../../test/adapters/payout-scene.ts";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

type WebhookPluginOptions = Parameters<typeof webhookPlugin>[0];

async function served<T>(
  mount: (app: FastifyInstance) => void,
  work: (ask: (wire: WireRequest) => Promise<WireAnswer>) => Promise<T>,
  options: FastifyServerOptions = {},
): Promise<T> {
  const app = fastify({ forceCloseConnections: true, ...options });
  mount(app);
  const address = await app.listen({ port: 0, host: "127.0.0.1" });
  try {
    return await work((wire) => send(Number(new URL(address).port), wire));
  } finally {
    await app.close();
  }
}

function webhooks(overrides: ConnectionOptions & Pick<WebhookPluginOptions, "addresses" | "hide"> = {}) {
  return webhookPlugin({
    basicAuth: { credentials: [{ username: "service", password: "test-password" }] },
    hmac: { secrets: [secret] },
    url: hookPath,
    hide: false,
    handler: createWebhookHandler({
      store: memoryIdempotencyStore(),
      fallback: "ignore",
    }),
    ...overrides,
  });
}

const withLines = (request: WireRequest, ...lines: string[]): WireRequest => ({
  ...request,
  headers: [...request.headers, ...lines],
});
const json = (path: string, value: unknown): WireRequest => ({
  method: "POST",
  path,
  headers: ["Content-Type", "application/json"],
  body: Buffer.from(JSON.stringify(value)),
});

test.each([
  ["payoutPlugin", () => payoutPlugin({ handler: () => undefined } as never)],
  ["payoutPlugin without a handler", () => payoutPlugin({} as never)],
  ["webhookPlugin", () => webhookPlugin({} as never)],
  ["idempotencyHook", () => idempotencyHook({} as never)],
])("%s throws on options that are not there", (_name, make) => {
  expect(make).toThrow(TypeError);
});

test.each([
  ["payoutPlugin", payoutPlugin],
  ["webhookPlugin", webhookPlugin],
] as const)("%s registered itself says how to write it", (name, make) => {
  expect(() => make(fastify() as never)).toThrow(`${name}: write app.register(${name}(options))`);
});

test("a misspelt option of a plugin is answered with all that there are", () => {
  const options = { url: hookPath, hide: false as const, clientAdress: () => undefined };
  expect(() => webhookPlugin(options as never)).toThrow(
    /unknown option clientAdress; did you mean clientAddress\? known options are .*clientAddress, .*url, hide, basicAuth/,
  );
  expect(() => webhookPlugin({ url: "hook" } as never)).toThrow(
    /option url must be the path of the route, such as/,
  );
});

describe("what is known of the connection", () => {
  const forwarded = withLines(deliver(), "X-Forwarded-Proto", "https", "X-Forwarded-For", "192.0.2.1");

  test("is not read from the fields of whoever calls, whatever trustProxy says", async () => {
    const mount = (app: FastifyInstance): void => void app.register(webhooks());
    const answer = await served(mount, (ask) => ask(forwarded), { trustProxy: true });
    expect([answer.status, answer.body]).toEqual([403, expect.stringContaining("https-required")]);
  });

  test("is what the options say by trusted proxies", async () => {
    const options = webhooks({
      addresses: { allow: ["192.0.2.1"] },
      clientAddress: (request) => request.ip,
      scheme: (request) => request.protocol,
    });
    const mount = (app: FastifyInstance): void => void app.register(options);
    const trustProxy = ["127.0.0.1"];
    expect((await served(mount, (ask) => ask(forwarded), { trustProxy })).status).toBe(200);
  });
});

describe("an app whose trustProxy believes everybody", () => {
  const asks = { clientAddress: (request: FastifyRequest) => request.ip };
  test.each<[string, FastifyServerOptions, ConnectionOptions, readonly string[]]>([
    ["is told of once for each plugin that asks it", { trustProxy: true }, asks, ["trust-proxy-unsafe"]],
    ["is one by a function too", { trustProxy: () => true }, asks, ["trust-proxy-unsafe"]],
    [
      "is one by a list of all addresses too",
      { trustProxy: ["0.0.0.0/1", "128.0.0.0/1"] },
      asks,
      ["trust-proxy-unsafe"],
    ],
    ["is another than one without trustProxy", {}, asks, []],
    ["is another than one that trusts the next hop", { trustProxy: (_address, hop) => hop < 1 }, asks, []],
    ["is no matter of a plugin that goes by the socket", { trustProxy: true }, {}, []],
    ["is another than one with a list", { trustProxy: ["127.0.0.1"] }, asks, []],
  ])("%s", async (_name, options, connection, codes) => {
    const warn = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const ask = (knock: (wire: WireRequest) => Promise<WireAnswer>): Promise<unknown> =>
      Promise.all([knock(deliver()), knock(deliver())]);
    await served((app) => void app.register(webhooks(connection)), ask, options);
    expect(warn.mock.calls.map(([, more]) => Object(more).code)).toEqual(codes);
    warn.mockRestore();
  });
});

test("leaves the parsers of other routes alone", async () => {
  const mount = (app: FastifyInstance): void => {
    app.register(webhooks());
    app.post("/echo", (request) => request.body);
  };
  const answer = await served(mount, (ask) => ask(json("/echo", { a: 1 })));
  expect([answer.status, answer.body]).toEqual([200, '{"a":1}']);
});

test("pays behind a hook of the app that has parsed nothing, and once", async () => {
  const paid: string[] = [];
  const plugin = payoutPlugin({
    addresses: { allow: ["127.0.0.1"] },
    signature: { keys: { "test-key": servicePublicPem }, nonces: memoryNonceStore() },
    idempotency: { store: memoryIdempotencyStore() },
    url: "/api/v1/transaction",
    handler: (_request, _reply, { payout }) => {
      paid.push(payout.idempotencyKey);
      return { status: "acknowledged" };
    },
  });
  await served(
    (app) => {
      app.addHook("onRequest", async () => undefined);
      app.register(plugin);
    },
    async (ask) => {
      expect((await ask(signPayout())).body).toBe('{"status":"acknowledged"}');
      expect((await ask(signPayout({ nonce: randomUUID() }))).status).toBe(409);
      await plugin.drain();
      const refused = await ask(withLines(signPayout({ nonce: randomUUID() }), "Connection", "keep-alive"));
      expect([refused.status, refused.headers.connection]).toEqual([503, "close"]);
    },
  );
  expect(paid).toHaveLength(1);
});

test("idempotencyOf() throws where no key was claimed", async () => {
  const mount = (app: FastifyInstance): void =>
    void app.post("/refunds", (request) => idempotencyOf(request).key);
  expect((await served(mount, (ask) => ask(json("/refunds", {})))).body).toContain("no key was claimed");
});

describe("a single check as a hook", () => {
  const credentials = [{ username: "service", password: "test-password" }];
  const verify = basicAuthVerifier({ credentials }, "basicAuth");
  const check = hook("basicAuth", async (request) => {
    await verify(receivedRequest(request), request);
  });
  const refuse = refusal({});
  const mount = (app: FastifyInstance): void => {
    app.get("/reports", {
      onRequest: (request, reply, next) =>
        check(request, reply, (error) =>
          error === undefined ? next() : refuse(error, request, reply, next),
        ),
      handler: () => "the report",
    });
  };
  const get = (...headers: string[]): WireRequest => ({
    method: "GET",
    path: "/reports",
    headers,
    body: Buffer.alloc(0),
  });

  test("lets pass, and refuses", async () => {
    await served(mount, async (ask) => {
      const genuine = `Basic ${Buffer.from("service:test-password").toString("base64")}`;
      expect((await ask(get("Authorization", genuine))).body).toBe("the report");
      const refused = await ask(get());
      expect([refused.status, refused.headers["www-authenticate"]]).toEqual([
        401,
        expect.stringContaining("Basic"),
      ]);
    });
  });
});

describe("header fields that hooks of the app have given the reply", () => {
  const fields = {
    "access-control-allow-origin": "https://app.example",
    "strict-transport-security": "max-age=1",
    "content-security-policy": "default-src 'none'",
    "set-cookie": ["a=1", "b=2"],
  };
  // What describes a body is of another one.
  const withHook =
    (
      mount: (app: FastifyInstance) => void,
      describing: Readonly<Record<string, string>> = { "content-encoding": "br", etag: "x" },
    ) =>
    (app: FastifyInstance) => {
      app.addHook("onRequest", async (_request, reply) => {
        void reply.headers(fields).headers({ "cache-control": "public", ...describing });
      });
      mount(app);
    };
  const bare = ({ status, headers, body }: WireAnswer): unknown => {
    const { date: _date, ...others } = headers;
    return { status, headers: others, body };
  };

  test.each<[string, () => (app: FastifyInstance) => void, WireRequest, number]>([
    ["a payout without a signature", () => mountPayouts, { ...signPayout(), headers: [] }, 401],
    ["a webhook over http", () => (app) => void app.register(webhooks()), deliver(), 403],
    ["a key that is none", () => mountRefunds(), json("/refunds", { key: "" }), 400],
  ])("stand beside those of a refusal: %s", async (_title, mount, request, status) => {
    const plain = await served(mount(), (ask) => ask(request));
    const hooked = await served(withHook(mount()), (ask) => ask(request));
    expect(hooked.status).toBe(status);
    expect(bare(hooked)).toEqual(bare({ ...plain, headers: { ...plain.headers, ...fields } }));
  });

  test("stand beside those of an answer that is given again", async () => {
    await served(withHook(mountRefunds(), { etag: "x" }), async (ask) => {
      await ask(json("/refunds", { key: "a" }));
      const again = await ask(json("/refunds", { key: "a" }));
      expect(again).toMatchObject({
        status: 200,
        body: '{"paid":"a"}',
        headers: {
          ...fields,
          "idempotency-replayed": "true",
          "content-type": "application/json; charset=utf-8",
        },
      });
      expect(again.headers).not.toHaveProperty("etag");
    });
  });

  function mountPayouts(app: FastifyInstance): void {
    app.register(
      payoutPlugin({
        addresses: { allow: ["127.0.0.1"] },
        signature: { keys: { "test-key": servicePublicPem }, nonces: memoryNonceStore() },
        idempotency: { store: memoryIdempotencyStore() },
        url: "/api/v1/transaction",
        handler: () => ({}),
      }),
    );
  }

  function mountRefunds() {
    const preHandler = idempotencyHook({
      store: memoryIdempotencyStore(),
      key: ({ body }: { readonly body?: unknown }) => (body as { readonly key: unknown }).key,
      fingerprint: () => "one",
      replay: { answers: memoryAnswerStore(), callers: "shared" },
    });
    return (app: FastifyInstance): void => {
      app.post("/refunds", { preHandler }, () => ({ paid: "a" }));
    };
  }
});

describe("a hidden webhook", () => {
  const hidden = { hide: true } as const;
  /** What was told of the app at its start. */
  async function told(mount: (app: FastifyInstance) => void, options: FastifyServerOptions = {}) {
    const messages: string[] = [];
    const hear = (notice: unknown): void => {
      const { code, message } = notice as { readonly code: string; readonly message: string };
      if (code === "webhook-not-hidden") messages.push(message);
    };
    subscribe("countersign:notice", hear);
    const app = fastify(options);
    mount(app);
    await app.ready();
    await app.close();
    unsubscribe("countersign:notice", hear);
    return messages;
  }
  const register = (app: FastifyInstance): void => void app.register(webhooks(hidden));
  const passes = async (): Promise<undefined> => undefined;

  test.each<[string, (app: FastifyInstance) => void, FastifyServerOptions]>([
    ["with nothing else", register, {}],
    [
      "with hooks and a 404 of the app, in whatever order",
      (app) => {
        app.addHook("onRequest", passes).addHook("preValidation", passes);
        register(app);
        app
          .addHook("onSend", passes)
          .setNotFoundHandler({ preHandler: passes }, (_request, reply) => reply.send("no"));
      },
      {},
    ],
    [
      "within the prefix whose 404 it has",
      (app) =>
        void app.register(
          async (scope) => {
            scope.setNotFoundHandler((_request, reply) => reply.send("no"));
            register(scope);
          },
          { prefix: "/api" },
        ),
      {},
    ],
  ])("is said nothing of %s", async (_title, mount, options) => {
    expect(await told(mount, options)).toEqual([]);
  });

  test.each<[string, (app: FastifyInstance) => void, FastifyServerOptions, RegExp]>([
    [
      "setNotFoundHandler({ preValidation })",
      (app) => {
        register(app);
        app.setNotFoundHandler({ preValidation: passes }, (_request, reply) => reply.send("no"));
      },
      {},
      /unknown route: an unknown route has other preValidation hooks; give/,
    ],
    [
      "hooks of its own scope",
      (app) =>
        void app.register(async (scope) => {
          scope.addHook("onRequest", passes);
          register(scope);
        }),
      {},
      /other onRequest hooks/,
    ],
    [
      "a 404 of the prefix that its path is under",
      (app) => {
        register(app);
        app.register(async (scope) => void scope.setNotFoundHandler((_request, reply) => reply.send("no")), {
          prefix: "/hooks",
        });
      },
      {},
      /404 of the paths beside it is of another prefix/,
    ],
    [
      "a route that takes all paths",
      (app) => {
        register(app);
        app.get("/*", () => "a page");
      },
      {},
      /such as one for "\/\*", takes GET, HEAD of unknown paths beside it/,
    ],
    [
      "a route with a parameter",
      (app) => {
        app.post("/hooks/:name", () => "another hook");
        register(app);
      },
      {},
      /takes POST of unknown paths/,
    ],
    ["handlerTimeout", register, { handlerTimeout: 1_000 }, /handlerTimeout \(1000 ms\) is 503/],
  ])("is said to differ by %s, once", async (_title, mount, options, message) => {
    expectWarning(new RegExp(`^\\[webhook-not-hidden\\].*${message.source}`));
    expect(await told(mount, options)).toEqual([expect.stringMatching(message)]);
  });

  test("names no route when the time of the app is over, as an unknown route", async () => {
    expectWarning(/^\[webhook-not-hidden\].*handlerTimeout \(100 ms\) is 503/);
    const app = fastify({ handlerTimeout: 100, forceCloseConnections: true });
    register(app);
    const { port } = new URL(await app.listen({ port: 0, host: "127.0.0.1" }));
    const half = (path: string): string =>
      `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{`;
    // The rest of the body does not come.
    const answers = await Promise.all(
      [hookPath, hookPath.replace(/.$/, "x")].map(async (path) => {
        const socket = connect(Number(port), "127.0.0.1").setEncoding("latin1");
        socket.write(half(path));
        const [answer] = (await once(socket, "data")) as [string];
        socket.destroy();
        return answer.replace(/date: .*/i, "");
      }),
    );
    await app.close();
    expect(answers[0]).toMatch(/^HTTP\/1\.1 503 /);
    expect(answers[0]).toBe(answers[1]);
  });
});
