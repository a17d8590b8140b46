// idempotencyGuard() around a handler that gets the transaction of its key, at every adapter.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { guardErrors } from "@countersign/express";
import { idempotencyHook } from "@countersign/fastify";
import { idempotentRoute } from "@countersign/fetch";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { getRequestListener } from "@hono/node-server";
import express5, { type ErrorRequestHandler } from "express";
import express4 from "express4";
import { fastify } from "fastify";
import { Hono } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { ExpressFactory } from "../support/runs/express-versions.ts";
import { close, listen, send } from "../support/servers/http-client.ts";
import { fingerprint, keyOf, origin, type GuardAdapterName, type GuardOptions } from "./guard-rows.ts";

interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

export interface GuardAdapter {
  readonly name: GuardAdapterName;
  /** Whether it is tested on servers too. SQLite is enough for an adapter that differs from one of these in its framework alone. */
  readonly isOnServers?: true;
  /** An app whose guard reads the key of `?key=`, and that answers `passed` behind it and `appStatus` to errors. */
  open(
    options: GuardOptions,
    appStatus: number,
  ): Promise<{
    readonly send: (method: string, key: string) => Promise<Seen>;
    readonly close: () => Promise<unknown>;
  }>;
}

const scope = "pay";

const over = (port: number) => (method: string, key: string) =>
  send(port, { method, path: `/pay?key=${key}`, headers: [], body: Buffer.alloc(0) });

function expressAdapter(name: GuardAdapterName, factory: ExpressFactory): GuardAdapter {
  return {
    name,
    async open(options, appStatus) {
      const app = factory();
      const failed: ErrorRequestHandler = (_error, _req, res, _next) =>
        void res.status(appStatus).end("failed");
      const guard = idempotencyGuard({ scope, key: keyOf, fingerprint, ...options });
      app.all("/pay", guard);
      app.all("/pay", (_req, res) => void res.end("passed"));
      app.use(guardErrors(), failed);
      const { server, port } = await listen(app);
      return { send: over(port), close: () => close(server) };
    },
  };
}

const nodeAdapter: GuardAdapter = {
  name: "node:http",
  async open(options, appStatus) {
    const guard = idempotencyGuard({ scope, key: keyOf, fingerprint, ...options });
    const answerError = guardErrors();
    const { server, port } = await listen((req: IncomingMessage, res: ServerResponse) => {
      guard(req, res, (error) => {
        if (error === undefined) res.end("passed");
        else answerError(error, req, res, () => res.writeHead(appStatus).end("failed"));
      });
    });
    return { send: over(port), close: () => close(server) };
  },
};

const fastifyAdapter: GuardAdapter = {
  name: "fastify",
  async open(options, appStatus) {
    const app = fastify({ forceCloseConnections: true });
    app.setErrorHandler((_error, _request, reply) => void reply.code(appStatus).send("failed"));
    app.all(
      "/pay",
      { preHandler: idempotencyHook({ scope, key: keyOf, fingerprint, ...options }) },
      () => "passed",
    );
    await app.listen({ port: 0, host: "127.0.0.1" });
    return { send: over((app.server.address() as AddressInfo).port), close: () => app.close() };
  },
};

type RouteOptions = Omit<GuardOptions, "methods" | "required">;

function routeOf({ methods: _methods, required: _required, ...options }: GuardOptions) {
  const given: RouteOptions = options;
  return idempotentRoute({ scope, key: keyOf, fingerprint, ...given });
}

const fetchAdapter: GuardAdapter = {
  name: "fetch",
  async open(options, appStatus) {
    const route = routeOf(options);
    return {
      async send(method, key) {
        const request = new Request(`${origin}/pay?key=${key}`, { method });
        const answered = await route(request).catch(() => new Response(null, { status: appStatus }));
        const headers = Object.fromEntries(answered.headers);
        return { status: answered.status, headers, body: await answered.text() };
      },
      close: async () => undefined,
    };
  },
};

const honoAdapter: GuardAdapter = {
  name: "hono",
  async open(options, appStatus) {
    const route = routeOf(options);
    const app = new Hono();
    app.all("/pay", (c) => route(c.req.raw));
    app.onError((_error, c) => c.text("failed", appStatus as ContentfulStatusCode));
    const listener = getRequestListener(app.fetch);
    const { server, port } = await listen((req, res) => void listener(req, res));
    return { send: over(port), close: () => close(server) };
  },
};

export const guardAdapters: readonly GuardAdapter[] = [
  { ...expressAdapter("express 5", express5), isOnServers: true },
  expressAdapter("express 4", express4),
  nodeAdapter,
  { ...fastifyAdapter, isOnServers: true },
  { ...fetchAdapter, isOnServers: true },
  honoAdapter,
];
