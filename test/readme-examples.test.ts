// The short examples of the READMEs, run: each does what its README says.
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint } from "countersign/payout";
import {
  buildPayoutRequest,
  buildWebhookRequest,
  createEnvelope,
  createPayoutInstruction,
  sendPayout,
  sendRequest,
} from "@countersign/devtools/sandbox";
import { signPayloadHeaders } from "@countersign/webhook-hmac";
import { generateEndpoint } from "countersign/webhooks";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import express, { type Express } from "express";
import { eventually } from "./support/runs/eventually.ts";
import { app as fastifyApp } from "../examples/snippets/dist/fastify.js";
import * as outcomes from "../examples/snippets/dist/outcomes.js";
import * as work from "../examples/snippets/dist/work.js";
import { receivePayout } from "../examples/snippets/dist/fetch.js";
import * as sandbox from "../examples/snippets/dist/sandbox.js";
import { testMyStore } from "../examples/snippets/dist/store-contract.js";
import * as sqlite from "../examples/snippets/dist/reference/sqlite.js";
import { readEvent } from "../examples/snippets/dist/webhook-hmac.js";
import * as webhooks from "../examples/snippets/dist/webhooks.js";

// TEST KEY of RFC 9421 appendix B.1.4, public knowledge.
const privateKey = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
-----END PRIVATE KEY-----`;
const keyid = "test-key-ed25519";
const url = "https://platform.example/api/v1/transaction";
const address = "192.0.2.10";
const closing: (() => void)[] = [];

afterEach(() => {
  for (const close of closing.splice(0)) close();
  jest.restoreAllMocks();
});

async function listen(app: Express): Promise<string> {
  const server = app.listen(0, "127.0.0.1");
  closing.push(() => server.close());
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The examples have no proxy that could name the client. */
function seenFromListed(server: Server): void {
  server.on("connection", (socket) => {
    Object.defineProperty(socket, "remoteAddress", { value: address });
  });
}

function signer(key = privateKey): () => ReturnType<typeof buildPayoutRequest> {
  const body = createPayoutInstruction({});
  return () => buildPayoutRequest({ url, body, keyid, privateKey: key });
}

test("fetch: a payout is taken once, from a listed address alone", async () => {
  const next = signer();
  const pay = async (clientAddress?: string): Promise<number> => {
    const { headers, bodyBytes: body } = next();
    return (await receivePayout(new Request(url, { method: "POST", headers, body }), { clientAddress }))
      .status;
  };
  expect([await pay(), await pay(address), await pay(address)]).toEqual([401, 200, 409]);
});

test("fastify: a payout is taken once, of the key alone", async () => {
  closing.push(() => void fastifyApp.close());
  seenFromListed(fastifyApp.server);
  const origin = await fastifyApp.listen({ host: "127.0.0.1", port: 0 });
  const other = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const next = signer();
  const pay = async (request = next()): Promise<number> =>
    (await sendPayout({ ...request, url: `${origin}/api/v1/transaction` })).status;
  expect([await pay(signer(other)()), await pay(), await pay()]).toEqual([401, 200, 409]);
});

test("sandbox: a platform that knows its key is paid", async () => {
  const app = express();
  const receive = payoutEndpoint({
    addresses: { allow: ["127.0.0.1"] },
    signature: { keys: sandbox.keys, nonces: memoryNonceStore() },
    idempotency: { store: memoryIdempotencyStore() },
  });
  app.post("/api/v1/transaction", receive, (_req, res) => void res.end());
  const to = `${await listen(app)}/api/v1/transaction`;
  expect([await sandbox.payOnce(to), await sandbox.payOnce(to)]).toEqual([200, 409]);
});

test("store-sql on SQLite: payment and key commit together, and the key is done", async () => {
  const server = sqlite.app.listen(0, "127.0.0.1");
  closing.push(() => server.close());
  await once(server, "listening");
  seenFromListed(server);
  const next = signer();
  const to = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1/transaction`;
  const pay = async (): Promise<number> => (await sendPayout({ ...next(), url: to })).status;
  expect([await pay(), await pay()]).toEqual([200, 409]);
});

test("webhook-hmac: an event is read, and no other bytes", () => {
  const bytes = Buffer.from('{"id":"evt_1"}');
  const headers = new Headers(signPayloadHeaders(bytes, "old", { scheme: "stripe" }));
  expect(readEvent(bytes, headers, ["new", "old"])).toEqual({ id: "evt_1" });
  expect(() => readEvent(Buffer.from('{"id":"evt_2"}'), headers, ["new", "old"])).toThrow();
});

test("webhooks: an event is handled once", async () => {
  const endpoint = generateEndpoint({ baseUrl: "https://platform.example" });
  const { path, username, password, secret } = endpoint;
  const app = webhooks.createApp(endpoint).set("trust proxy", "loopback");
  const data = { buyer_id: "b-1", old_status: "PENDING", new_status: "ACTIVE" };
  const body = createEnvelope({
    events: [{ event_id: "ev-1", type: "buyer.status_changed", data }],
    now: 1_800_000_000_123_456_789n,
  });
  const to = { url: (await listen(app)) + path, allowHttp: true, body, username, password, secret };
  const request = buildWebhookRequest(to);
  const send = async (proto: string): Promise<number | undefined> => {
    const headers = { ...request.headers, "X-Forwarded-Proto": proto };
    return (await sendRequest({ ...request, headers })).status;
  };
  expect([await send("http"), await send("https"), await send("https")]).toEqual([404, 200, 200]);
  const changes = webhooks.database.prepare("SELECT buyer, status FROM changes");
  expect(changes.all()).toMatchObject([{ buyer: "b-1", status: "ACTIVE" }]);
});

// What the harness of the README does not offer is no case here.
testMyStore({ describe, test: Object.assign(test.bind(undefined), { skip: () => undefined }) });

describe("work and outcomes", () => {
  /** A server that keeps the bodies of requests. */
  async function receiver(): Promise<{ url: string; bodies: string[] }> {
    const bodies: string[] = [];
    const app = express().use(express.text({ type: () => true }), (req, res) => {
      bodies.push(String(req.body));
      res.end();
    });
    return { url: await listen(app), bodies };
  }

  test("work: a task is done after the commit that added it, once", async () => {
    const { url: partner, bodies } = await receiver();
    process.env["PARTNER_URL"] = partner;
    work.notices.start();
    await work.paid("payout-1");
    await work.paid("payout-1");
    await eventually(() => bodies.length > 0);
    await work.notices.drain();
    expect(bodies).toEqual(["payout-1"]);
  });

  test("outcomes: what is settled waits for the service", async () => {
    await outcomes.settle("payout-1", new Date(0));
    await expect(outcomes.settle("payout-1", new Date(1))).rejects.toMatchObject({ code: "outcome-differs" });
    expect(await outcomes.outcomes.drain()).toEqual({ keys: 0, claims: 0 });
  });
});
