// What a programmer gets who misspells an option, mounts a factory that nobody has called, or gives a database for its stores: a sentence
// that says what to write.
import type { AddressInfo } from "node:net";
import { idempotencyHook, payoutPlugin, webhookPlugin } from "@countersign/fastify";
import { idempotentRoute, payoutRoute, webhookRoute } from "@countersign/fetch";
import { httpSignatureVerify } from "@countersign/http-signature-verify";
import { createTaskQueue } from "@countersign/idempotency/work";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { createStores } from "@countersign/store-sql";
import { fromPg } from "@countersign/store-sql/pg";
import { webhookBasicAuth } from "@countersign/webhook-basic-auth";
import { webhookHmac } from "@countersign/webhook-hmac";
import { payoutEndpoint } from "countersign/payout";
import { createWebhookHandler, webhookEndpoint } from "countersign/webhooks";
import { describe, expect, test } from "@jest/globals";
import express5 from "express";
import express4 from "express4";
import { fastify } from "fastify";
import { Hono } from "hono";
import Database from "libsql";
import { Pool } from "pg";
import { close, listen, send } from "../support/servers/http-client.ts";

type Build = (...args: never[]) => unknown;
const never = (): never => {
  throw new Error("nobody calls it");
};

function errorOf(build: Build, ...args: readonly unknown[]): unknown {
  try {
    (build as (...given: readonly unknown[]) => unknown)(...args);
  } catch (error) {
    return error;
  }
  return undefined;
}

test.each<[string, Build, object, string]>([
  ["payoutEndpoint", payoutEndpoint, { findBuisness: never }, "findBusiness"],
  ["payoutPlugin", payoutPlugin, { findBuisness: never, url: "/" }, "findBusiness"],
  ["payoutRoute", payoutRoute, { findBuisness: never }, "findBusiness"],
  ["webhookEndpoint", webhookEndpoint, { handlers: never }, "handler"],
  ["webhookPlugin", webhookPlugin, { handlers: never, url: "/" }, "handler"],
  ["webhookRoute", webhookRoute, { handlers: never }, "handler"],
  ["createWebhookHandler", createWebhookHandler, { fallbak: never }, "fallback"],
  ["idempotencyGuard", idempotencyGuard, { scop: "a" }, "scope"],
  ["idempotencyHook", idempotencyHook, { scop: "a" }, "scope"],
  ["idempotentRoute", idempotentRoute, { scop: "a" }, "scope"],
  ["httpSignatureVerify", httpSignatureVerify, { key: {} }, "keys"],
  ["ipAllowlist", ipAllowlist, { allowed: [] }, "allow"],
  ["webhookHmac", webhookHmac, { sceret: "s" }, "secret"],
  ["webhookBasicAuth", webhookBasicAuth, { user_name: "u" }, "username"],
  ["createTaskQueue", createTaskQueue, { queues: "a" }, "queue"],
  ["createStores", createStores, { schemas: "a", pool: new Pool() }, "schema"],
])("asks whether the known option was meant: %s", (factory, build, options, meant) => {
  const error = errorOf(build, options, never);
  expect(error).toBeInstanceOf(TypeError);
  const expected = new RegExp(
    `^${factory}: unknown option \\w+; did you mean ${meant}\\? known options are `,
  );
  expect(error).toMatchObject({ message: expect.stringMatching(expected) });
});

describe("a factory that nobody has called", () => {
  const factories: readonly (readonly [string, Build])[] = [
    ["payoutEndpoint", payoutEndpoint],
    ["webhookEndpoint", webhookEndpoint],
    ["idempotencyGuard", idempotencyGuard],
    ["httpSignatureVerify", httpSignatureVerify],
    ["ipAllowlist", ipAllowlist],
    ["webhookHmac", webhookHmac],
    ["payoutPlugin", payoutPlugin],
    ["idempotencyHook", idempotencyHook],
    ["payoutRoute", payoutRoute],
    ["idempotentRoute", idempotentRoute],
  ];
  const post = {
    method: "POST",
    path: "/pay",
    headers: ["Content-Type", "application/json"],
    body: Buffer.from("{}"),
  };

  /** The errors with which a router ends a request to the factory in the place of a handler. */
  const routers: readonly (readonly [string, (build: Build) => Promise<unknown>])[] = [
    ...(
      [
        ["express 5", express5],
        ["express 4", express4],
      ] as const
    ).map(([name, factory]) => {
      const ask = async (build: Build): Promise<unknown> => {
        let seen: unknown;
        const app = factory();
        app.post("/pay", build as never);
        app.use(((error, _req, res, _next) => {
          seen = error;
          res.end();
        }) as express5.ErrorRequestHandler);
        const { server, port } = await listen(app);
        await send(port, post).finally(() => close(server));
        return seen;
      };
      return [name, ask] as const;
    }),
    [
      "node:http",
      async (build) => {
        let seen: unknown;
        const { server, port } = await listen((req, res) => {
          seen = errorOf(build, req, res);
          res.end();
        });
        await send(port, post).finally(() => close(server));
        return seen;
      },
    ],
    [
      "fastify",
      async (build) => {
        let seen: unknown;
        const app = fastify({ forceCloseConnections: true });
        app.setErrorHandler((error, _request, reply) => {
          seen = error;
          void reply.send("failed");
        });
        app.post("/pay", build as never);
        await app.listen({ port: 0, host: "127.0.0.1" });
        const { port } = app.server.address() as AddressInfo;
        await send(port, post).finally(() => app.close());
        return seen;
      },
    ],
    ["fetch", async (build) => errorOf(build, new Request("http://pay.example/pay", { method: "POST" }), {})],
    [
      "hono",
      async (build) => {
        let seen: unknown;
        const app = new Hono();
        app.onError((error, c) => {
          seen = error;
          return c.text("failed");
        });
        app.post("/pay", build as never);
        await app.request("/pay", { method: "POST", body: "{}" });
        return seen;
      },
    ],
  ];

  test.each(
    routers.flatMap(([router, ask]) => factories.map(([name, build]) => [router, name, ask, build] as const)),
  )("is told to be called, on %s: %s", async (_router, name, ask, build) => {
    const error = await ask(build);
    expect(error).toBeInstanceOf(TypeError);
    const expected = `${name}: got a request in the place of its options: call ${name}(options) once`;
    expect(error).toMatchObject({ message: expect.stringContaining(expected) });
  });
});

describe("a database in the place of its stores", () => {
  const pool = new Pool();
  const databases: readonly (readonly [string, object])[] = [
    ["a connection of SQLite", new Database(":memory:")],
    ["a pool of pg", pool],
    ["a Database of fromPg", fromPg(pool)],
    ["a client of Prisma", { $transaction: never, $queryRaw: never }],
    ["a Kysely, a Drizzle or a Sequelize", { transaction: never }],
  ];
  const checks = { addresses: { allow: ["127.0.0.1"] }, signature: { keys: {} } };
  const takers: readonly (readonly [string, Build, object])[] = [
    ["payoutEndpoint", payoutEndpoint, { ...checks, pay: never }],
    ["payoutPlugin", payoutPlugin, { ...checks, pay: never, url: "/" }],
    ["payoutRoute", payoutRoute, { ...checks, pay: never }],
    ["idempotencyGuard", idempotencyGuard, { key: never, scope: "a", handle: never }],
    ["idempotencyHook", idempotencyHook, { key: never, scope: "a", handle: never }],
    ["idempotentRoute", idempotentRoute, { key: never, scope: "a", handle: never }],
    ["createWebhookHandler", createWebhookHandler, { fallback: never }],
    ["createTaskQueue", createTaskQueue, { queue: "a", exactlyOnce: never }],
  ];

  test.each(
    takers.flatMap(([factory, build, options]) =>
      databases.map(([what, database]) => [factory, what, build, { ...options, stores: database }] as const),
    ),
  )("is told to be put into createStores: %s, %s", (factory, _what, build, options) => {
    const error = errorOf(build, options);
    expect(error).toBeInstanceOf(TypeError);
    const expected = `${factory}: option stores is a database and not its stores: write createStores({ database })`;
    expect(error).toMatchObject({ message: expect.stringContaining(expected) });
  });
});
