// The apps that are compared: an endpoint, and a bare route with the same unavoidable work. The only place that builds them.
import { createHash, createHmac, createPublicKey, timingSafeEqual, verify } from "node:crypto";
import { contentDigest } from "@countersign/content-digest";
import { guardErrors } from "@countersign/express";
import { httpSignatureVerify, memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { answer, payoutEndpoint } from "countersign/payout";
import { jsonBody, rawBody } from "@countersign/raw-body";
import { createWebhookHandler, webhookEndpoint } from "countersign/webhooks";
import express from "express";
import { keyid, path as payoutPath } from "./signer.mjs";
import { path as webhookPath } from "./webhook-sender.mjs";

export const apps = {
  payout,
  payoutChain,
  payoutInTransaction,
  payoutSodium,
  payoutNoble,
  payoutLoop,
  payoutLogged,
  payoutCounted,
  payoutTraced,
  barePayout,
  bareRefusal,
  webhook,
  bareWebhook,
  handwrittenWebhook,
};

/** A route of the payout's app that waits for nothing. */
export const unrelatedPath = "/up";

/** Ways to open an endpoint's stores: in memory, answering at once or by a promise that is resolved already. */
export const stores = { memory, promises };

export function payout({ publicKeyPem }, openStores = memory, engine = {}) {
  const app = newApp();
  const { nonces, idempotency } = openStores();
  const endpoint = payoutEndpoint({
    addresses: { allow: ["127.0.0.1"] },
    signature: { keys: { [keyid]: publicKeyPem }, nonces, ...engine },
    idempotency: { store: idempotency },
    findBusiness: () => true,
    referenceField: "reference",
  });
  app.post(payoutPath, endpoint, (_req, res) => void res.json({ status: "acknowledged" }));
  app.get(unrelatedPath, (_req, res) => void res.json({ status: "up" }));
  return app;
}

/** The checks of the endpoint mounted one by one, without its schema and business. */
function payoutChain({ publicKeyPem }, openStores = memory) {
  const app = newApp();
  const { nonces, idempotency } = openStores();
  app.post(
    payoutPath,
    ipAllowlist({ allow: ["127.0.0.1"] }),
    rawBody(),
    contentDigest(),
    httpSignatureVerify({ keys: { [keyid]: publicKeyPem }, nonces }),
    jsonBody(),
    idempotencyGuard({ store: idempotency, scope: "chain", key: (req) => req.body.idempotency_key }),
    (_req, res) => void res.json({ status: "acknowledged" }),
  );
  app.use(guardErrors());
  return app;
}

/** On stores of a database alone. */
function payoutInTransaction({ publicKeyPem }, openStores) {
  const app = newApp();
  let isMade = false;
  const endpoint = payoutEndpoint({
    addresses: { allow: ["127.0.0.1"] },
    signature: { keys: { [keyid]: publicKeyPem } },
    stores: openStores(),
    findBusiness: () => true,
    referenceField: "reference",
    pay(_payout, { tx }) {
      if (!isMade) tx.exec("CREATE TEMP TABLE written (n)");
      isMade = true;
      tx.exec("INSERT INTO written VALUES (1)");
      return answer(200, { status: "acknowledged" });
    },
  });
  app.post(payoutPath, endpoint);
  return app;
}

function payoutSodium(secrets, openStores) {
  return payout(secrets, openStores, { engine: "sodium" });
}

function payoutNoble(secrets, openStores) {
  return payout(secrets, openStores, { engine: "noble" });
}

function payoutLoop(secrets, openStores) {
  return payout(secrets, openStores, { threadPool: false });
}

// Each sink as it is used: of a payout that is paid the log has no line, the exporters give nothing away.
async function payoutLogged(secrets, openStores) {
  const { pinoLog } = await import("@countersign/observe/log");
  const { pino } = await import("pino");
  pinoLog(pino({}, { write() {} }));
  return payout(secrets, openStores);
}

async function payoutCounted(secrets, openStores) {
  const { prometheus } = await import("@countersign/observe/prometheus");
  prometheus();
  return payout(secrets, openStores);
}

async function payoutTraced(secrets, openStores) {
  const { opentelemetry } = await import("@countersign/observe/opentelemetry");
  const { context } = await import("@opentelemetry/api");
  const { AsyncLocalStorageContextManager } = await import("@opentelemetry/context-async-hooks");
  const { MeterProvider } = await import("@opentelemetry/sdk-metrics");
  const { BasicTracerProvider, BatchSpanProcessor } = await import("@opentelemetry/sdk-trace-base");
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const nowhere = {
    export: (_spans, done) => done({ code: 0 }),
    shutdown: async () => {},
    forceFlush: async () => {},
  };
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(nowhere)] });
  opentelemetry({ tracerProvider, meterProvider: new MeterProvider() });
  return payout(secrets, openStores);
}

/** Reads the body, one SHA-256, one Ed25519 verification over a signature base of the usual length. */
export function barePayout({ publicKeyPem, base, signature }) {
  const app = newApp();
  const publicKey = createPublicKey(publicKeyPem);
  const sample = { base: Buffer.from(base, "base64"), signature: Buffer.from(signature, "base64") };
  app.post(payoutPath, express.raw({ type: () => true }), (req, res) => {
    const digest = createHash("sha256").update(req.body).digest("base64");
    if (digest.length !== 44 || !verify(null, sample.base, publicKey, sample.signature)) {
      throw new Error("not verified");
    }
    res.json({ status: "acknowledged" });
  });
  return app;
}

/** A 401 as the endpoint gives it, without looking at the request. */
function bareRefusal() {
  const app = newApp();
  const body = JSON.stringify({ type: "about:blank", title: "Unauthorized", status: 401 });
  app.post(payoutPath, (_req, res) => {
    res
      .status(401)
      .set({ "Content-Type": "application/problem+json", "Cache-Control": "no-store" })
      .send(body);
  });
  return app;
}

function webhook({ username, password, secret }, openStores = memory) {
  const app = newApp();
  let handled = 0;
  const handler = createWebhookHandler({
    store: openStores({ retentionMs: 3 * 86_400_000 }).idempotency,
    fallback: "ignore",
  });
  handler.on("buyer.status_changed", () => void handled++);
  const endpoint = webhookEndpoint({
    basicAuth: { username, password },
    hmac: { secret },
    https: { dangerouslyAllowHttp: true },
    handler,
  });
  app.use(webhookPath, endpoint);
  return app;
}

/** Reads the body, computes one HMAC and answers as the endpoint does: an empty 200, without Express's send. */
function bareWebhook({ secret }) {
  const app = newApp();
  app.post(webhookPath, express.raw({ type: () => true }), (req, res) => {
    const signature = createHmac("sha256", secret).update(req.body).digest("base64");
    if (signature !== req.headers["x-payload-signature"]) throw new Error("not verified");
    res.status(200).end();
  });
  return app;
}

const digestOf = (text) => createHash("sha256").update(text).digest();

/** What the endpoint does, by hand: credentials and HMAC in constant time, JSON, and a Map of the events that were handled. */
function handwrittenWebhook({ username, password, secret }) {
  const app = newApp();
  const credentials = digestOf(`Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`);
  const handled = new Map();
  let changed = 0;
  app.post(webhookPath, express.raw({ type: () => true }), (req, res) => {
    const isKnown = timingSafeEqual(digestOf(req.headers.authorization ?? ""), credentials);
    const expected = createHmac("sha256", secret).update(req.body).digest();
    const given = Buffer.from(req.headers["x-payload-signature"] ?? "", "base64");
    if (!isKnown || given.length !== expected.length || !timingSafeEqual(given, expected)) {
      res.status(401).end();
      return;
    }
    for (const event of JSON.parse(req.body).events) {
      if (handled.has(event.event_id)) continue;
      if (event.type === "buyer.status_changed") changed++;
      handled.set(event.event_id, Date.now());
    }
    res.status(200).end();
  });
  return app;
}

function newApp() {
  return express().disable("x-powered-by").disable("etag");
}

function memory(options) {
  return { nonces: memoryNonceStore(), idempotency: memoryIdempotencyStore(options) };
}

// What a store on a server answers, less the server: every step costs the guards an await, and nothing else.
function promises(options) {
  const { nonces, idempotency } = memory(options);
  return {
    nonces: { claim: async (claim) => nonces.claim(claim) },
    idempotency: {
      retentionMs: idempotency.retentionMs,
      claim: async (key, claim) => idempotency.claim(key, claim),
      read: async (key) => idempotency.read(key),
      heartbeat: async (key, token, leaseMs) => idempotency.heartbeat(key, token, leaseMs),
      complete: async (key, token) => idempotency.complete(key, token),
      release: async (key, token) => idempotency.release(key, token),
      hold: async (key, token, reason) => idempotency.hold(key, token, reason),
      resolve: async (key, outcome, decision) => idempotency.resolve(key, outcome, decision),
      reopen: async (key, decision) => idempotency.reopen(key, decision),
      readReleased: async (key) => idempotency.readReleased(key),
      list: async (query) => idempotency.list(query),
      prune: async () => idempotency.prune(),
      close: async () => idempotency.close(),
    },
  };
}
