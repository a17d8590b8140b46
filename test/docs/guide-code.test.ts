// The code of the pages, run: what a page says of it is what it does.
import { generateKeyPairSync } from "node:crypto";
import { guardErrors } from "@countersign/express";
import { sign } from "@countersign/http-message-signatures";
import { cachedKeys, memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint, type PayoutEndpointOptions } from "countersign/payout";
import { createWebhookHandler } from "countersign/webhooks";
import type { Payout } from "countersign/payout";
import {
  buildPayoutRequest,
  buildWebhookRequest,
  createEnvelope,
  createPayoutInstruction,
  sendPayout,
  sendRequest,
} from "@countersign/devtools/sandbox";
import { signPayload, signPayloadHeaders } from "@countersign/webhook-hmac";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "@jest/globals";
import express, { type Express } from "express";
import Database from "libsql";
import { type SqliteStores, createStores } from "@countersign/store-sql";
import { serviceKey } from "../support/signers/test-keys.ts";
import { eventually } from "../support/runs/eventually.ts";
import { app as digestingApp } from "../../examples/snippets/dist/reference/digest-response.js";
import { createApp as createAppBehindProxy } from "../../examples/snippets/dist/guide/behind-a-proxy.js";
import { payByBank } from "../../examples/snippets/dist/guide/bank.js";
import { app as recordingApp } from "../../examples/snippets/dist/payout.js";
import { signerOf, webhookOf } from "../../examples/snippets/dist/guide/by-hand.js";
import { onGraphileWorker, onPgBoss, outcomeWork } from "../../examples/snippets/dist/guide/job-queue.js";
import { measure } from "../../examples/snippets/dist/guide/monitor.js";
import { createApp as createAppOfOthers } from "../../examples/snippets/dist/guide/other-webhooks.js";
import { createPlatform } from "../../examples/snippets/dist/guide/outcomes.js";
import { createApp as createAppWithParser } from "../../examples/snippets/dist/guide/parser-before.js";
import * as endpoint from "../../examples/snippets/dist/guide/webhook-endpoint.js";
import { createApp as createAppWithList } from "../../examples/snippets/dist/reference/live-allowlist.js";
import { startLog } from "../../examples/snippets/dist/reference/explained-log.js";
import { forgetOnHangup, receiveWebhooks } from "../../examples/snippets/dist/guide/rotation.js";
import { baseOf } from "../../examples/snippets/dist/guide/why-401.js";

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const privateKeyPem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const keyid = "service-1";
const closing: (() => void)[] = [];

afterEach(() => {
  for (const close of closing.splice(0)) close();
});

const knownKeys = { [keyid]: publicKey.export({ type: "spki", format: "pem" }).toString() };

/** Stores in memory, and a `pay` that writes the payout beside them. */
function platform(): { readonly stores: SqliteStores; readonly pay: (payout: Payout) => void } {
  const database = new Database(":memory:");
  database.exec("CREATE TABLE payouts (key TEXT)");
  const insert = database.prepare("INSERT INTO payouts VALUES (?)");
  const stores = createStores({ database });
  closing.push(() => stores.close());
  return { stores, pay: ({ idempotencyKey }) => void insert.run(idempotencyKey) };
}

/** The page's app with a parser in front, whose proxy is this test. */
function appWithParser(): Express {
  const { stores, pay } = platform();
  return createAppWithParser(knownKeys, stores, pay).set("trust proxy", "loopback");
}

const payouts = (): PayoutEndpointOptions => ({
  addresses: { allow: ["127.0.0.1"] },
  signature: { keys: { [keyid]: publicKey }, nonces: memoryNonceStore() },
  idempotency: { store: memoryIdempotencyStore() },
});

async function urlOf(app: Express): Promise<string> {
  const server = app.listen(0, "127.0.0.1");
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const forwarded = { "X-Forwarded-For": "192.0.2.10" };

/** Sends one payout again and again, each time signed anew, by a proxy or not. */
async function payer(app: Express, headers: Record<string, string> = {}): Promise<() => Promise<number>> {
  const url = `${await urlOf(app)}/api/v1/transaction`;
  const body = createPayoutInstruction({ idempotencyKey: "payout-1.funding-1.business-1" });
  return async () =>
    (await sendPayout(buildPayoutRequest({ url, body, keyid, privateKey: privateKeyPem, headers }))).status;
}

test("receive payouts: what the bank may have paid is held, and asked for once", async () => {
  const app = express();
  const asked: string[] = [];
  payByBank(app, payouts(), {
    transfer: ({ reference }) => {
      asked.push(reference);
      return Promise.reject(new Error("the bank does not answer"));
    },
  });
  app.use(((_error, _req, res, _next) => void res.status(500).end()) as express.ErrorRequestHandler);
  const pay = await payer(app);
  expect([await pay(), await pay(), await pay()]).toEqual([500, 503, 503]);
  expect(asked).toEqual(["payout-1.funding-1.business-1"]);
});

test("receive payouts: a 2xx ends a held key as done", async () => {
  const app = express();
  payByBank(app, payouts(), { transfer: () => Promise.resolve() });
  const pay = await payer(app);
  expect([await pay(), await pay()]).toEqual([200, 409]);
});

const noAmounts = [{}, ...["-5", "0.00", "1.123456", "1e3", 0, -1].map((value) => ({ value }))];

test.each(noAmounts)(
  "receive payouts: %j is no amount, and neither recorded nor sent to the bank",
  async (amount) => {
    const orders: unknown[] = [];
    const banking = express();
    payByBank(banking, payouts(), { transfer: async (order) => void orders.push(order) });
    const send = async (app: Express, signer: object): Promise<number> => {
      const url = `${await urlOf(app)}/api/v1/transaction`;
      const body = createPayoutInstruction({ amount, businessId: "biz_1" });
      const signing = { keyid, privateKey: privateKeyPem, ...signer };
      const request = buildPayoutRequest({ url, body, ...signing });
      return (await sendPayout(request)).status;
    };
    expect(await send(banking, {})).toBe(400);
    const ofRfc = {
      keyid: "test-key-ed25519",
      privateKey: serviceKey.export({ type: "pkcs8", format: "pem" }),
      headers: forwarded,
    };
    expect(await send(recordingApp.set("trust proxy", "loopback"), ofRfc)).toBe(400);
    expect(orders).toEqual([]);
  },
);

test("receive payouts: a parser in front hands over the bytes", async () => {
  const pay = await payer(appWithParser(), forwarded);
  expect(await pay()).toBe(200);
});

describe("outcomes", () => {
  const key = "payout-1.funding-1.business-1";

  test("one is expected with the payout, written with its end, and sent once", async () => {
    const received: unknown[] = [];
    const service = express().post("/outcomes", express.json(), (req, res) => {
      received.push([req.headers["x-api-key"], req.body]);
      res.end();
    });
    const settings = { url: `${await urlOf(service)}/outcomes`, apiKey: "key-1" };
    const { app, stores, outcomes, bankSays } = createPlatform(knownKeys, settings);
    const pay = await payer(app);
    expect([await pay(), await pay()]).toEqual([200, 409]);
    expect(await stores.work.read("outcomes-expected", key)).toMatchObject({ state: "open", attempts: 0 });
    await bankSays(key, "account closed", new Date());
    await expect(bankSays(key, undefined, new Date())).rejects.toMatchObject({ code: "outcome-differs" });
    outcomes.start();
    await eventually(async () => (await stores.work.read("outcomes", key))?.state === "done");
    const body = { idempotency_key: key, status: "FAILED", reason: "account closed" };
    expect(received).toEqual([["key-1", body]]);
    expect(await outcomes.drain()).toEqual({ keys: 0, claims: 0 });
    stores.close();
  });

  test("another queue adds in the transaction that it is given, and its worker sends", async () => {
    const outcome = { idempotencyKey: key, status: "SETTLED" } as const;
    const sent: unknown[] = [];
    const query = (text: string, values: unknown[]): Promise<{ rows: unknown[] }> => {
      sent.push([text, values]);
      return Promise.resolve({ rows: [] });
    };
    await onGraphileWorker.add({ query }, outcome);
    const send = (
      name: string,
      data: object,
      { db }: { db: Parameters<Parameters<typeof onPgBoss>[0]["send"]>[2]["db"] },
    ) => db.executeSql(name, [data]);
    await onPgBoss({ send }).add({ query }, outcome);
    expect(sent).toEqual([
      [
        expect.stringMatching(
          /^SELECT graphile_worker\.add_job\(\s+'report_outcome', \$1::json, job_key => \$2\)$/,
        ),
        [JSON.stringify(outcome), key],
      ],
      ["report-outcome", [outcome]],
    ]);
    const answers = [200, 503, 422];
    const received: unknown[] = [];
    const service = express().post("/outcomes", express.json(), (req, res) => {
      received.push(req.body);
      res.sendStatus(answers.shift() ?? 500);
    });
    const refused: unknown[] = [];
    const work = outcomeWork({ url: `${await urlOf(service)}/outcomes`, apiKey: "key-1" }, (...told) => {
      refused.push(told);
    });
    await work(outcome);
    await expect(work(outcome)).rejects.toThrow("the service answered 503");
    expect(refused).toEqual([]);
    await work(outcome);
    expect(refused).toEqual([[outcome, expect.stringContaining("the service answered 422")]]);
    expect(received).toEqual(Array.from({ length: 3 }, () => ({ idempotency_key: key, status: "SETTLED" })));
  });
});

test("receive webhooks: all four are made up", () => {
  expect(endpoint.url).toBe(`https://platform.example${endpoint.path}`);
  expect(new Set([endpoint.path, endpoint.username, endpoint.password, endpoint.secret]).size).toBe(4);
});

describe("rotation", () => {
  test("webhooks count under the old secret and password too, each of which is told while it is used", async () => {
    const app = express().set("trust proxy", "loopback");
    const old: string[] = [];
    const counted: string[] = [];
    const { stores } = platform();
    const handler = createWebhookHandler({ stores, fallback: ({ event_id }) => void counted.push(event_id) });
    const credentials = ["new", "old"].map((password) => ({ username: "service", password }));
    receiveWebhooks(app, "/hooks", { secrets: ["new", "old"], credentials }, handler, (what) => {
      old.push(what);
    });
    const url = `${await urlOf(app)}/hooks`;
    const send = async (id: string, password: string, secret: string): Promise<number | undefined> => {
      const data = { buyer_id: "b-1", old_status: "PENDING", new_status: "ACTIVE" };
      const events = [{ event_id: id, type: "buyer.status_changed", data }];
      const body = createEnvelope({ events, now: 1_800_000_000_123_456_789n });
      const request = buildWebhookRequest({
        url,
        allowHttp: true,
        body,
        username: "service",
        password,
        secret,
      });
      const headers = { ...request.headers, "X-Forwarded-Proto": "https" };
      return (await sendRequest({ ...request, headers })).status;
    };
    expect([await send("1", "new", "new"), old]).toEqual([200, []]);
    expect([await send("2", "old", "old"), old]).toEqual([200, ["password", "secret"]]);
    expect([await send("3", "new", "old"), old.slice(2)]).toEqual([200, ["secret"]]);
    expect([await send("4", "stolen", "new"), await send("5", "new", "stolen"), old.length]).toEqual([
      404, 404, 3,
    ]);
    expect(counted).toEqual(["1", "2", "3"]);
  });

  test("a revoked key is refused from SIGHUP on", async () => {
    const published = new Map(Object.entries(knownKeys));
    const keys = cachedKeys((asked) => published.get(asked));
    closing.push(forgetOnHangup(keys));
    const app = express();
    app.post(
      "/pay",
      payoutEndpoint({ ...payouts(), signature: { keys, nonces: memoryNonceStore() } }),
      (_req, res) => {
        res.end();
      },
    );
    const url = `${await urlOf(app)}/pay`;
    const pay = async (): Promise<number> => {
      const body = createPayoutInstruction({});
      return (await sendPayout(buildPayoutRequest({ url, body, keyid, privateKey: privateKeyPem }))).status;
    };
    expect(await pay()).toBe(200);
    published.clear();
    // It is remembered for five minutes.
    expect(await pay()).toBe(200);
    // jest gives a test another `process` than the one that gets signals.
    process.emit("SIGHUP");
    expect(await pay()).toBe(401);
  });
});

test("behind a proxy: a listed caller is paid once for a signature, and nobody else is paid", async () => {
  const paid: string[] = [];
  const { stores, pay } = platform();
  const app = createAppBehindProxy(knownKeys, stores, (payout) => {
    paid.push(payout.idempotencyKey);
    pay(payout);
  });
  // The proxy of this test.
  app.set("trust proxy", "loopback");
  const url = `${await urlOf(app)}/api/v1/transaction`;
  const body = createPayoutInstruction({ idempotencyKey: "payout-1.funding-1.business-1" });
  const send = async (caller: string, changed: Record<string, string> = {}): Promise<number> => {
    const request = buildPayoutRequest({ url, body, keyid, privateKey: privateKeyPem });
    const headers = { ...request.headers, "X-Forwarded-For": caller, ...changed };
    return (await sendPayout({ ...request, headers })).status;
  };
  const unsigned = { Signature: `sig1=:${Buffer.alloc(64).toString("base64")}:` };
  expect([await send("203.0.113.9"), await send("192.0.2.10", unsigned)]).toEqual([401, 401]);
  expect([await send("192.0.2.10"), await send("192.0.2.10"), paid]).toEqual([
    200,
    409,
    ["payout-1.funding-1.business-1"],
  ]);
});

test("monitor: refusals and passes are counted, with the page of their code in the log", async () => {
  const counted: string[] = [];
  const logged: object[] = [];
  const stop = measure(
    {
      count: (name, labels) => void counted.push([name, ...Object.values(labels)].join(" ")),
      observe: (_name, seconds) => expect(seconds).toBeGreaterThanOrEqual(0),
    },
    (fields) => void logged.push(fields),
  );
  closing.push(stop);
  const pay = await payer(appWithParser(), forwarded);
  expect([await pay(), await pay()]).toEqual([200, 409]);
  expect(counted).toContain("countersign_verdicts_total httpSignatureVerify pass none");
  expect(counted).toContain("countersign_verdicts_total idempotencyGuard reject already-processed");
  const docs = expect.stringMatching(/codes\.md#already-processed$/);
  expect(logged).toContainEqual(expect.objectContaining({ code: "already-processed", docs }));
});

test("what the signer has to change: it is in the log, behind the refusal and with its id", async () => {
  const lines: { readonly id?: unknown; readonly message: string }[] = [];
  const write = (fields: object, text: string): void => void lines.push({ ...fields, message: text });
  closing.push(startLog({ info: write, warn: write, error: write }, knownKeys));
  const app = appWithParser();
  const url = `${await urlOf(app)}/api/v1/transaction`;
  const body = createPayoutInstruction({ idempotencyKey: "payout-1.funding-1.business-1" });
  const request = buildPayoutRequest({
    url,
    body,
    keyid: "service-2",
    privateKey: privateKeyPem,
    headers: forwarded,
  });
  expect((await sendPayout(request)).status).toBe(401);
  await eventually(() => lines.some(({ message: text }) => text.startsWith("Send keyid=")));
  const [refusal, explained] = lines.filter(({ message: text }) => /refused|keyid/.test(text));
  expect(explained?.message).toBe(
    'Send keyid="service-1": the signature fits that key, and none is known as "service-2".',
  );
  expect(explained?.id).toBe(refusal?.id);
});

const message = (): { method: string; target: string; rawHeaders: string[] } => ({
  method: "POST",
  target: "/api/v1/transaction",
  rawHeaders: ["Content-Type", "application/json"],
});
const components = ["@method", "@path", "content-type"];

test("I get a 401: the base is what was signed", () => {
  const { signatureInput, signatureBase } = sign(message(), { key: privateKey, keyid, components });
  expect(baseOf(message(), signatureInput)).toBe(signatureBase);
});

test("by hand: the pure functions take what every framework has", async () => {
  const request = message();
  const { signatureInput, signature } = sign(request, { key: privateKey, keyid, components });
  request.rawHeaders.push("Signature-Input", signatureInput, "Signature", signature);
  const policy = { keys: { [keyid]: publicKey }, nonces: memoryNonceStore(), requiredComponents: components };
  const bytes = Buffer.alloc(0);
  expect(await signerOf({ ...request, bytes }, policy)).toBe(keyid);
  await expect(signerOf({ ...request, bytes }, policy)).rejects.toMatchObject({ code: "nonce-replayed" });

  const body = Buffer.from('{"webhook_id":"wh_1","timestamp":"2024-01-02T03:04:05Z","events":[]}');
  expect(webhookOf(body, signPayload(body, "test-secret"), ["test-secret"]).webhook_id).toBe("wh_1");
  expect(() => webhookOf(body, signPayload(body, "other"), ["test-secret"])).toThrow(
    expect.objectContaining({ code: "payload-signature-wrong" }),
  );
});

describe("webhooks of others", () => {
  // A test secret, in the form that every one of them takes.
  const secret = `whsec_${Buffer.alloc(32, "test").toString("base64")}`;
  const senders = ["github", "shopify", "stripe", "slack", "svix"] as const;
  const ids: Readonly<Record<string, Record<string, string>>> = {
    github: { "X-GitHub-Delivery": "72d3162e" },
    shopify: { "X-Shopify-Webhook-Id": "b54557e4" },
  };

  test.each(senders)("%s: a message is handled once, a forged one never", async (scheme) => {
    let handled = 0;
    const secrets = Object.fromEntries(senders.map((name) => [name, [secret]])) as Record<
      (typeof senders)[number],
      string[]
    >;
    const app = createAppOfOthers(new Database(":memory:"), secrets, (_req, res) => {
      handled += 1;
      res.json({});
    });
    const server = app.listen(0, "127.0.0.1");
    closing.push(() => server.close());
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks/${scheme}`;
    const send = async (text: string): Promise<number> => {
      const id = scheme === "svix" ? "msg_1" : undefined;
      const timestampSeconds = Math.floor(Date.now() / 1000);
      const signed = signPayloadHeaders(Buffer.from(body), secret, { scheme, id, timestampSeconds });
      const headers = { "Content-Type": "application/json", ...signed, ...ids[scheme] };
      return (await fetch(url, { method: "POST", headers, body: text })).status;
    };
    const body = '{"id":"evt_1","event_id":"Ev_1"}';
    expect([await send(body.replace("1", "2")), handled]).toEqual([401, 0]);
    expect([await send(body), await send(body), handled]).toEqual([200, 200, 1]);
  });
});

describe("the README of ip-allowlist: a list that changes", () => {
  async function appOf(status: number, list: string): Promise<Express> {
    const listed = express().get("/list", (_req, res) => void res.status(status).send(list));
    return createAppWithList(`${await urlOf(listed)}/list`);
  }

  test.each([
    ["192.0.2.1\n127.0.0.0/8\n", 200],
    ["192.0.2.1\n", 401],
  ])("admits whom %j names: %d", async (list, status) => {
    const app = await appOf(200, list);
    app.get("/", (_req, res) => void res.sendStatus(200));
    app.use(guardErrors());
    expect((await fetch(await urlOf(app))).status).toBe(status);
  });

  test("has no app where there is no first list", async () => {
    await expect(appOf(404, "127.0.0.1")).rejects.toThrow();
  });
});

test("the README of content-digest: an answer has both fields", async () => {
  const { headers } = await fetch(`${await urlOf(digestingApp)}/terms`);
  expect(headers.get("content-digest")).toMatch(/^sha-256=:/);
  expect(headers.get("repr-digest")).toBe(headers.get("content-digest"));
});
