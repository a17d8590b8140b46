// What each adapter makes of a client that a proxy names with a port, and of a proxy on a unix socket, which has no address.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { isGuardError } from "@countersign/core";
import { payoutPlugin } from "@countersign/fastify";
import { payoutRoute } from "@countersign/fetch";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint } from "countersign/payout";
import { getConnInfo } from "@hono/node-server/conninfo";
import { getRequestListener } from "@hono/node-server";
import { describe, expect, test } from "@jest/globals";
import express5 from "express";
import express4 from "express4";
import { fastify } from "fastify";
import { Hono } from "hono";
import { servicePublicPem } from "../support/signers/test-keys.ts";
import type { ExpressFactory } from "../support/runs/express-versions.ts";

const url = "/payout";
const optionsWith = (ignorePort: boolean) => ({
  addresses: { allow: ["198.51.100.7"], ignorePort },
  signature: { keys: { "test-key": servicePublicPem }, nonces: memoryNonceStore() },
  idempotency: { store: memoryIdempotencyStore() },
});
type Options = ReturnType<typeof optionsWith>;
type Note = (error: unknown) => void;
interface App {
  readonly listener: (req: IncomingMessage, res: ServerResponse) => unknown;
  readonly close?: () => unknown;
}

const onExpress =
  (factory: ExpressFactory) =>
  (options: Options, note: Note): App => {
    const app = factory().set("trust proxy", 1);
    app.post(url, payoutEndpoint({ ...options, onReject: note }));
    return { listener: app };
  };

const adapters: readonly (readonly [string, (options: Options, note: Note) => App | Promise<App>])[] = [
  ["express 5", onExpress(express5)],
  ["express 4", onExpress(express4)],
  [
    "fastify",
    async (options, note) => {
      // Fastify takes no hop count. The peer of a unix socket is the only one without an address.
      const app = fastify({ trustProxy: (address: string | undefined) => address === undefined });
      const clientAddress = (request: { readonly ip: string }): string => request.ip;
      app.register(payoutPlugin({ ...options, url, clientAddress, onReject: note, handler: () => ({}) }));
      await app.ready();
      return { listener: (req, res) => app.routing(req, res), close: () => app.close() };
    },
  ],
  [
    "fetch by hono",
    (options, note) => {
      const route = payoutRoute({ ...options, onReject: note }, () => new Response());
      const app = new Hono();
      // The app's own reading of its one proxy.
      app.post(url, (c) => {
        const forwarded = c.req.header("X-Forwarded-For")?.split(",").at(-1)?.trim();
        expect(getConnInfo(c).remote.address).toBeUndefined();
        return route(c.req.raw, { clientAddress: forwarded });
      });
      const listener = getRequestListener(app.fetch);
      return { listener };
    },
  ],
];

/** The code of the refusal of a request that is not signed, sent by a unix socket. */
async function codeOf(
  build: (options: Options, note: Note) => App | Promise<App>,
  ignorePort: boolean,
  forwarded: string | undefined,
): Promise<{ readonly status: number | undefined; readonly code: unknown; readonly message: string }> {
  const errors: unknown[] = [];
  const { listener, close } = await build(optionsWith(ignorePort), (error) => void errors.push(error));
  const socketPath = path.join(tmpdir(), `countersign-${process.pid}-${randomUUID()}.sock`);
  const server = createServer((req, res) => void listener(req, res)).listen(socketPath);
  await once(server, "listening");
  try {
    const headers = forwarded === undefined ? {} : { "X-Forwarded-For": forwarded };
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const sent = httpRequest({ socketPath, path: url, method: "POST", headers }, (res) => {
        res.resume();
        resolve(res.statusCode);
      });
      sent.on("error", reject).end("{}");
    });
    const [error] = errors;
    const refusal = isGuardError(error) ? error : undefined;
    return { status, code: refusal?.code, message: refusal?.message ?? "" };
  } finally {
    server.closeAllConnections();
    server.close();
    await close?.();
  }
}

describe.each(adapters)("a proxy on a unix socket at %s", (_adapter, build) => {
  test.each<[string, boolean, string | undefined, string]>([
    ["a listed client", false, "198.51.100.7", "signature-missing"],
    ["a listed client behind the caller's own text", false, "192.0.2.1, 198.51.100.7", "signature-missing"],
    ["an unlisted client behind a listed one", false, "198.51.100.7, 192.0.2.1", "ip-not-allowed"],
    ["a listed client with a port", false, "198.51.100.7:5123", "ip-unknown"],
    ["a listed client with a port, by ignorePort", true, "198.51.100.7:5123", "signature-missing"],
    ["an unlisted client with a port, by ignorePort", true, "192.0.2.1:5123", "ip-not-allowed"],
    ["no client", false, undefined, "ip-unknown"],
  ])("is answered by the client that it names: %s", async (_title, ignorePort, forwarded, code) => {
    const answer = await codeOf(build, ignorePort, forwarded);
    expect(answer).toMatchObject({ status: 401, code });
    if (forwarded === undefined) expect(answer.message).toMatch(/unix socket.*count the proxies/);
  });
});
