// A platform on a bad day: real endpoints under traffic in which each metric has something to count.
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import express from "express";
import Database from "libsql";
import { Registry } from "prom-client";
import { importVerificationKey } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { createOutcomes } from "countersign/outcomes";
import { payoutEndpoint, payoutOf } from "countersign/payout";
import { prometheus } from "@countersign/observe/prometheus";
import { sampleBusiness } from "@countersign/devtools/sandbox";
import { sampleEventData } from "@countersign/devtools/internal";
import { createStores } from "@countersign/store-sql";
import { createWebhookHandler, webhookEndpoint } from "countersign/webhooks";
import {
  credentials,
  newKey,
  nowSeconds,
  oldKey,
  payoutPath,
  startService,
  webhookPath,
} from "./service.mjs";

/** The alerts that the scene gives reason for, by what they are after less than a minute. */
export const provoked = {
  firing: [
    "CountersignKeyHeld",
    "CountersignLeaseLost",
    "CountersignCompletionLost",
    "CountersignEventsDeadLettered",
    "CountersignOutcomeOverdue",
  ],
  pending: [
    "CountersignHeldKeys",
    "CountersignTasksDead",
    "CountersignStoreErrors",
    "CountersignNotDecided",
    "CountersignOldKeyUsed",
    "CountersignKeyEnds",
    "CountersignEventsFail",
    "CountersignClockSkewRefused",
  ],
};

const day = 86_400;

// Longer than a lease, shorter than the slowest payout.
const outageSeconds = 3.5;

/** `outagesAt`: when stores do not answer for a while, in seconds since the beginning. */
export async function startScene({ outagesAt }) {
  const database = new Database(":memory:");
  const stores = createStores({ database });
  const isOut = outageClock(outagesAt);
  const registry = new Registry();
  const endMetrics = prometheus({
    registry,
    heldKeys: { payouts: stores.idempotency },
    work: { payouts: stores.work },
  });
  const outcomes = await reported(stores);
  const app = express();
  app.get("/metrics", async (_req, res) => res.type(registry.contentType).send(await registry.metrics()));
  app.post(payoutPath, payoutsOf(stores, isOut), pay);
  app.use(webhookPath, webhooks());
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  const service = startService(`http://127.0.0.1:${port}`);
  const operator = setInterval(() => releaseTooEarly(stores.idempotency), 1_000);
  return {
    port,
    async close() {
      clearInterval(operator);
      await service.end();
      await outcomes.drain({ timeoutMs: 1_000 });
      endMetrics();
      server.closeAllConnections();
      server.close();
      stores.idempotency.close();
      database.close();
    },
  };
}

/** Outcomes of which the service has some, refuses one for good, and one is overdue. */
async function reported(stores) {
  const service = createServer((req, res) => {
    res.writeHead(req.url.endsWith("/refused") ? 422 : Math.random() < 0.3 ? 503 : 200).end();
  }).listen(0, "127.0.0.1");
  service.unref();
  await once(service, "listening");
  const outcomes = createOutcomes({
    stores,
    url: ({ idempotencyKey }) => `http://127.0.0.1:${service.address().port}/${idempotencyKey}`,
    expectWithinMs: 1_000,
  });
  const report = (idempotencyKey) =>
    stores.transactions.run((tx) => outcomes.report(tx, { idempotencyKey, status: "SETTLED" }));
  await stores.transactions.run((tx) => outcomes.expect(tx, { idempotencyKey: "forgotten" }));
  await report("refused");
  outcomes.start();
  let settled = 0;
  const settling = setInterval(() => void report(`settled-${(settled += 1)}`), 200);
  return {
    async drain(options) {
      clearInterval(settling);
      await outcomes.drain(options);
      service.close();
    },
  };
}

function outageClock(outagesAt) {
  const startedAt = performance.now();
  return (step) => {
    const seconds = (performance.now() - startedAt) / 1000;
    // Renewals come through last, so that somebody else is first at a key whose owner still works.
    const longer = step === "heartbeat" ? 1 : 0;
    return outagesAt.some((from) => seconds >= from && seconds < from + outageSeconds + longer);
  };
}

function payoutsOf({ idempotency, nonces }, isOut) {
  const subject = "lending-service";
  const keys = {
    [newKey.keyid]: importVerificationKey(newKey.keyid, newKey.publicKeyPem, { subject }),
    [oldKey.keyid]: importVerificationKey(oldKey.keyid, oldKey.publicKeyPem, {
      subject,
      notAfter: nowSeconds() + 5 * day,
    }),
  };
  const lease = { leaseMs: 1_000, storeTimeoutMs: 300, waitMs: 800 };
  return payoutEndpoint({
    addresses: { allow: ["127.0.0.1"] },
    signature: { keys, nonces: unsteady(nonces, isOut), storeTimeoutMs: 300 },
    idempotency: { store: unsteady(idempotency, isOut), ...lease },
    findBusiness: ({ businessId }) => businessId === sampleBusiness.businessId,
  });
}

/** The same store, whose calls fail now and then, and all of them while it is out: every other one without a word. */
function unsteady(store, isOut) {
  let calls = 0;
  return new Proxy(store, {
    get(inner, name) {
      const member = inner[name];
      if (typeof member !== "function") return member;
      return (...given) => {
        calls += 1;
        if (isOut(name) && calls % 2 === 0) return new Promise(() => {});
        if (isOut(name) || calls % 211 === 0) throw new Error("no connection");
        return member.apply(inner, given);
      };
    },
  });
}

const unclear = "the bank did not answer";

/** An operator who waits for the bank, and takes every other owner that fell silent for dead. */
async function releaseTooEarly(store) {
  const { entries } = await store.list({ state: "held", limit: 100 });
  const silent = entries.filter(({ record }) => record.reason !== unclear);
  await Promise.all(silent.map(({ key, record }) => store.resolve(key, "released", { fence: record.fence })));
}

function pay(req, res) {
  const { reference } = payoutOf(req).body;
  if (reference === "unclear") req.idempotency.hold(unclear);
  const status = { refused: 422, unclear: 502 }[reference] ?? 200;
  setTimeout(() => res.sendStatus(status), durations[reference] ?? 5 + 20 * Math.random());
}

const durations = { slow: 400, "very slow": 9_000 };

function webhooks() {
  const handler = createWebhookHandler({
    store: memoryIdempotencyStore({ retentionMs: 3 * day * 1000 }),
    fallback: "ignore",
    timeoutMs: 300,
    maxAttempts: 3,
    onDeadLetter() {},
    onError() {},
  });
  for (const type of sampleEventData.keys()) {
    handler.on(type, async ({ event_id }) => {
      await sleep(2 + 10 * Math.random());
      if (event_id.startsWith("bad")) throw new Error("no such buyer");
      if (event_id.startsWith("slow")) await sleep(500);
    });
  }
  const { username, password, secret } = credentials;
  return webhookEndpoint({
    basicAuth: { username, password },
    hmac: { secret },
    https: { dangerouslyAllowHttp: true },
    handler,
  });
}
