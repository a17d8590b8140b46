// What follows a check that has captured the body, on servers other than Express: node:http, Fastify, fetch, Hono, and Nest on both.
import { createHmac } from "node:crypto";
import type { Server } from "node:http";
import { afterEach, describe, expect, test } from "@jest/globals";
import { guardErrors, type Middleware } from "@countersign/express";
import { hook, receivedRequest as fastifyRequest, refusal } from "@countersign/fastify";
import { checkedRoute } from "@countersign/fetch";
import { payloadVerifier, webhookHmac } from "@countersign/webhook-hmac";
import { serve } from "@hono/node-server";
import {
  Module,
  RequestMethod,
  type INestApplication,
  type MiddlewareConsumer,
  type NestModule,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ExpressAdapter, type NestExpressApplication } from "@nestjs/platform-express";
import { FastifyAdapter, type NestFastifyApplication } from "@nestjs/platform-fastify";
import express from "express";
import { fastify } from "fastify";
import { Hono } from "hono";
import { close, listen, send, type WireAnswer } from "../support/servers/http-client.ts";
import { allowWarnings } from "../support/runs/expect-warning.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of closing.splice(0)) await stop();
});

const secret = "test-secret-test-secret-test-secret";
const hmac = { scheme: "github", secret } as const;

function post(port: number, contentType: string, body: string | Buffer): Promise<WireAnswer> {
  const bytes = Buffer.from(body);
  const signature = createHmac("sha256", secret).update(bytes).digest("hex");
  const headers = ["Content-Type", contentType, "X-Hub-Signature-256", `sha256=${signature}`];
  return send(port, {
    method: "POST",
    path: "/hook",
    headers: [...headers, "Connection", "close"],
    body: bytes,
  });
}

async function started(server: Server): Promise<number> {
  closing.push(() => close(server));
  if (!server.listening) await new Promise((resolve) => server.once("listening", resolve));
  return portOf(server);
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

type Start = () => Promise<number>;

/** Answers `{ value }` from its parsed JSON. */
const servers: readonly (readonly [name: string, start: Start])[] = [
  [
    "node:http",
    async () => {
      const check = webhookHmac(hmac);
      const errors = guardErrors();
      const { server, port } = await listen((req, res) => {
        check(req, res, (error) => {
          if (error !== undefined) return errors(error, req, res, () => res.writeHead(500).end());
          try {
            res.end(JSON.stringify({ value: Reflect.get(req, "body") as unknown }));
          } catch (fault) {
            errors(fault, req, res, () => res.writeHead(500).end());
          }
        });
      });
      closing.push(() => close(server));
      return port;
    },
  ],
  [
    "Fastify",
    async () => {
      const app = fastify();
      const verify = payloadVerifier(hmac);
      const check = hook("webhookHmac", async (request) => {
        await verify(fastifyRequest(request), request);
      });
      const refuse = refusal({});
      app.post("/hook", {
        onRequest: (request, reply, next) =>
          check(request, reply, (error) =>
            error === undefined ? next() : refuse(error, request, reply, next),
          ),
        handler: (request) => ({ value: request.body }),
      });
      closing.push(() => app.close());
      await app.listen({ port: 0, host: "127.0.0.1" });
      return portOf(app.server);
    },
  ],
  [
    "Nest on Express, by app.use",
    () => nest(new ExpressAdapter(), (app) => app.use("/hook", webhookHmac(hmac))),
  ],
  [
    "Nest on Express, with its parsers switched off",
    () =>
      nest(
        new ExpressAdapter(),
        (app) => {
          app.use("/hook", webhookHmac(hmac));
          app.use(express.json());
        },
        { bodyParser: false },
      ),
  ],
  ["Nest on Fastify", () => nest(new FastifyAdapter(), (app) => app.use("/hook", webhookHmac(hmac)))],
  [
    "Hono",
    async () => {
      const app = new Hono();
      const verify = payloadVerifier<Request>(hmac);
      const route = (handler: (request: Request) => Promise<Response>) =>
        checkedRoute({ name: "webhookHmac" }, verify, handler);
      app.post("/hook", (c) => route(async () => c.json({ value: await c.req.json<unknown>() }))(c.req.raw));
      const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }) as Server;
      return started(server);
    },
  ],
];

async function nest(
  adapter: ExpressAdapter | FastifyAdapter,
  prepare: (app: INestApplication) => void,
  {
    configured,
    ...options
  }: { readonly bodyParser?: boolean; readonly rawBody?: boolean; readonly configured?: Middleware } = {},
): Promise<number> {
  class App implements NestModule {
    configure(consumer: MiddlewareConsumer): void {
      if (configured === undefined) return;
      const answer = (req: { body?: unknown }, res: { json(value: unknown): void }): void =>
        res.json({ value: req.body });
      consumer.apply(configured, answer).forRoutes({ path: "hook", method: RequestMethod.POST });
    }
  }
  Module({})(App);
  const app: INestApplication = await (adapter instanceof ExpressAdapter
    ? NestFactory.create<NestExpressApplication>(App, adapter, {
        logger: false,
        abortOnError: false,
        ...options,
      })
    : NestFactory.create<NestFastifyApplication>(App, adapter, { logger: false, abortOnError: false }));
  closing.push(() => app.close());
  prepare(app);
  if (configured === undefined) {
    adapter.post("/hook", (req: { body?: unknown }, res: { send(value: unknown): void }) =>
      res.send({ value: req.body }),
    );
  }
  if (adapter instanceof ExpressAdapter) adapter.use(guardErrors());
  await app.listen(0, "127.0.0.1");
  return portOf(app.getHttpServer() as Server);
}

describe.each(servers)("on %s", (_name, start) => {
  test("JSON after a check is the value that was sent", async () => {
    const answer = await post(await start(), "application/json", '{"amount":10.10,"text":"é😀"}');
    expect([answer.status, JSON.parse(answer.body)]).toEqual([200, { value: { amount: 10.1, text: "é😀" } }]);
  });

  test.each([
    { name: "a key twice", body: '{"amount":1,"amount":1000}' },
    { name: "half of a surrogate pair", body: '{"a":"\\ud800"}' },
    { name: "__proto__", body: '{"__proto__":{"isAdmin":true}}' },
  ])("JSON with $name is 400 after a check", async ({ body }) => {
    expect((await post(await start(), "application/json", body)).status).toBe(400);
  });

  test("JSON in another encoding is 415 after a check", async () => {
    const body = Buffer.from('{"amount":1}', "utf16le");
    const answer = await post(await start(), "application/json; charset=utf-16le", body);
    expect(answer.status).toBe(415);
  });

  test("an unreadable type is an error after a check, never an empty body", async () => {
    // Hono prints the error that nobody handles.
    allowWarnings(/^SyntaxError: Unexpected token|^    at /);
    expect((await post(await start(), "text/x-unknown", "amount=1")).status).toBeGreaterThanOrEqual(400);
  });
});

test("Nest's parser with rawBody: true leaves the bytes to a check of configure(), and the default does not", async () => {
  const body = '{"a":"é😀"}';
  const statuses: Record<string, number> = {};
  for (const rawBody of [true, false]) {
    const start = nest(new ExpressAdapter(), () => undefined, { rawBody, configured: webhookHmac(hmac) });
    // oxlint-disable-next-line no-await-in-loop -- one app after the other
    const answer = await post(await start, "application/json", body);
    statuses[`rawBody: ${rawBody}`] = answer.status;
    if (rawBody) expect(JSON.parse(answer.body)).toEqual({ value: { a: "é😀" } });
  }
  expect(statuses).toEqual({ "rawBody: true": 200, "rawBody: false": 500 });
});

describe("a fetch handler after a check", () => {
  const verify = payloadVerifier<Request>(hmac);
  const answered = (
    contentType: string,
    body: string | Buffer,
    read: (request: Request) => Promise<unknown>,
  ): Promise<Response> => {
    const bytes = Buffer.from(body);
    const signature = createHmac("sha256", secret).update(bytes).digest("hex");
    const headers = { "Content-Type": contentType, "X-Hub-Signature-256": `sha256=${signature}` };
    const request = new Request("https://platform.example/hook", { method: "POST", headers, body: bytes });
    const route = checkedRoute({ name: "webhookHmac" }, verify, async () =>
      Response.json(await read(request)),
    );
    return route(request);
  };
  const octets = Buffer.from([0, 1, 0xff]);
  const multipart = [
    "--limit",
    'Content-Disposition: form-data; name="amount"',
    "",
    "10",
    "--limit--",
    "",
  ].join("\r\n");
  const json = '{"amount":10}';

  test.each<{
    readonly name: string;
    readonly contentType: string;
    readonly body: string | Buffer;
    readonly read: (request: Request) => Promise<unknown>;
    readonly seen: unknown;
  }>([
    {
      name: "json()",
      contentType: "application/json",
      body: json,
      read: (r) => r.json(),
      seen: { amount: 10 },
    },
    {
      name: "text() of JSON",
      contentType: "application/json",
      body: json,
      read: (r) => r.text(),
      seen: json,
    },
    { name: "text()", contentType: "text/plain", body: "a b", read: (r) => r.text(), seen: "a b" },
    {
      name: "json() and text(), one after the other",
      contentType: "application/json",
      body: json,
      read: async (r) => [await r.json(), await r.text()],
      seen: [{ amount: 10 }, json],
    },
    {
      name: "arrayBuffer()",
      contentType: "application/octet-stream",
      body: octets,
      read: async (r) => [...new Uint8Array(await r.arrayBuffer())],
      seen: [...octets],
    },
    {
      name: "blob()",
      contentType: "application/octet-stream",
      body: octets,
      read: async (r) => [...new Uint8Array(await (await r.blob()).arrayBuffer())],
      seen: [...octets],
    },
    {
      name: "bytes()",
      contentType: "application/octet-stream",
      body: octets,
      read: async (r) => [...(await (r as unknown as { bytes(): Promise<Uint8Array> }).bytes())],
      seen: [...octets],
    },
    {
      name: "formData()",
      contentType: "multipart/form-data; boundary=limit",
      body: multipart,
      read: async (r) => (await r.formData()).get("amount"),
      seen: "10",
    },
    {
      name: "formData() of an encoded form",
      contentType: "application/x-www-form-urlencoded",
      body: "amount=10",
      read: async (r) => (await r.formData()).get("amount"),
      seen: "10",
    },
  ])("reads what was sent by $name", async ({ contentType, body, read, seen }) => {
    const response = await answered(contentType, body, read);
    expect([response.status, await response.json()]).toEqual([200, seen]);
  });

  test.each<{
    readonly name: string;
    readonly contentType: string;
    readonly body: string;
    readonly read: (request: Request) => Promise<unknown>;
    readonly status: number;
  }>([
    {
      name: "json() of a key twice",
      contentType: "application/json",
      body: '{"a":1,"a":2}',
      read: (r) => r.json(),
      status: 400,
    },
    {
      name: "text() of a key twice",
      contentType: "application/json",
      body: '{"a":1,"a":2}',
      read: (r) => r.text(),
      status: 400,
    },
    { name: "json() of text", contentType: "text/plain", body: json, read: (r) => r.json(), status: 415 },
  ])("is refused $name: $status", async ({ contentType, body, read, status }) => {
    expect((await answered(contentType, body, read)).status).toBe(status);
  });
});
