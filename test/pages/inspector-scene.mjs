// A platform with an inspector, and those who send to it as they should and otherwise.
import { once } from "node:events";
import { Agent, createServer, request as httpRequest } from "node:http";
import express from "express";
import Database from "libsql";
import { guardErrors } from "@countersign/express";
import { inspector as startInspector } from "@countersign/devtools/inspector";
import { payoutEndpoint, payoutOf } from "countersign/payout";
import { jsonBody } from "@countersign/raw-body";
import {
  buildPayoutRequest,
  buildWebhookRequest,
  createPayoutInstruction,
  generateKeyPair,
  sendPayout,
} from "@countersign/devtools/sandbox";
import { createStores } from "@countersign/store-sql";
import { webhookBasicAuth } from "@countersign/webhook-basic-auth";
import { webhookHmac } from "@countersign/webhook-hmac";

/** TEST CREDENTIALS. */
export const seeded = {
  password: "seeded-password-92bc",
  secret: "seeded-secret+5d08/",
  bank: "seeded-bank-token-31",
  session: "seeded-session-c7",
  apiKey: "seeded-api-key-7f41",
};
const username = "service";
const keyid = "service-2026-08";

/** Everything that no answer may hold: the credentials in each form in which they may stand somewhere. */
function secretForms() {
  const texts = [...Object.values(seeded), `${username}:${seeded.password}`];
  return texts.flatMap((text) => [
    text,
    Buffer.from(text).toString("base64").replace(/=+$/, ""),
    encodeURIComponent(text),
    JSON.stringify(text).slice(1, -1),
  ]);
}

/** What a handler throws when its database is away; the message names a secret. */
function bookTransfer() {
  const cause = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:5432"), { code: "ECONNREFUSED" });
  throw new Error(`no connection for the ledger, token ${seeded.bank}`, { cause });
}

export async function startScene({ kept = 500 } = {}) {
  const pair = generateKeyPair({ keyid });
  const others = generateKeyPair({ keyid });
  const keys = { [keyid]: pair.publicKeyPem };
  const database = new Database(":memory:");
  const stores = createStores({ database });
  const app = express();
  const server = createServer(app);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const platform = `http://127.0.0.1:${server.address().port}`;

  // What is built first is observed as well.
  const inspector = await startInspector({
    kept,
    signature: { keys },
    hmac: { secret: seeded.secret },
    basicAuth: { username, password: seeded.password },
    stores: { payouts: stores.idempotency },
    work: { main: stores.work },
    secrets: [seeded.bank],
  });
  app.post(
    "/api/v1/transaction",
    payoutEndpoint({
      addresses: { allow: ["127.0.0.1"] },
      signature: { keys, nonces: stores.nonces },
      // A handler that has failed runs again: the page shows both attempts.
      idempotency: { store: stores.idempotency, recovery: "rerun" },
      findBusiness: () => true,
    }),
    (req, res) => {
      const { idempotencyKey } = payoutOf(req);
      if (idempotencyKey.startsWith("late")) {
        req.idempotency.hold("bank-timeout");
        res.status(504).end();
      } else if (idempotencyKey.startsWith("broken")) bookTransfer();
      else res.json({ status: "acknowledged" });
    },
  );
  app.post(
    "/hooks/4f2a91",
    webhookBasicAuth({ username, password: seeded.password }),
    webhookHmac({ secret: seeded.secret }),
    jsonBody(),
    (_req, res) => res.json({ status: "received" }),
  );
  app.use(guardErrors(), (_error, _req, res, _next) => {
    res.status(500).json({ status: "failed", seen: seeded.bank });
  });

  const path = "/api/v1/transaction";
  const payout = ({ operation = "op-1", prefix = "", key = pair, ...spoilt } = {}) =>
    buildPayoutRequest({
      url: `${platform}${prefix}${path}`,
      target: path,
      body: createPayoutInstruction({ idempotencyKey: `${operation}.funding-1.business-1` }),
      privateKey: key.privateKeyPem,
      keyid,
      ...spoilt,
    });
  const hook = (changes = {}) =>
    buildWebhookRequest({
      url: `${platform}/hooks/4f2a91?bank=${seeded.bank}`,
      username,
      password: seeded.password,
      secret: seeded.secret,
      body: Buffer.from(`{\r\n\t"seen": "${seeded.bank}",\r\n\t"name": "Blue\u202eWhale"\r\n}\n`),
      allowHttp: "loopback",
      ...changes,
    });
  const send = async (request) => (await sendPayout(request)).status;
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });

  return {
    inspector,
    platform,
    secrets: secretForms(),
    /** The base that was signed under a prefix that the platform does not see, by its own key or by another one. */
    baseOf: (options) => payout(options).signature.signatureBase,
    pays: (operation) => send(payout({ operation })),
    async paysTwice(operation) {
      const request = payout({ operation });
      return [await send(request), await send(request)];
    },
    signsWithPrefix: () => send(payout({ prefix: "/payments" })),
    signsWithOtherKey: () => send(payout({ key: others })),
    spoilsBody: () => send(payout({ tamper: "body" })),
    isHeld: (operation) => send(payout({ operation: `late-${operation}` })),
    /** Outcomes on their way: two given up, one that waits for its next attempt; the inbox is paused. */
    async works() {
      const task = (id) => ({ id, entity: "business-1", body: "{}" });
      const add = (queue, tasks) =>
        void database.transaction(() => stores.work.add(database, queue, tasks))();
      add(
        "outcomes",
        ["op-31.funding-1", "op 32.funding-1", "op-33.funding-1"].map((id) => ({ ...task(id), entity: id })),
      );
      add("inbox", [task("evt_4711"), task("evt_4712")]);
      const owned = await stores.work.claim({
        queue: "outcomes",
        limit: 3,
        token: "worker-1",
        leaseMs: 60_000,
      });
      const reason = `the service answered 503, token ${seeded.bank}`;
      for (const [index, each] of owned.entries())
        await stores.work.fail(each, { reason, retryInMs: index === 2 ? 600_000 : undefined });
      await stores.work.pause("inbox", { by: "ada", note: "the ledger moves" });
    },
    throws: (operation) => send(payout({ operation: `broken-${operation}` })),
    webhook: () => send(hook()),
    async webhookWith(changes) {
      const request = hook(changes);
      const headers = {
        ...request.headers,
        Cookie: `session=${seeded.session}`,
        "X-API-Key": seeded.apiKey,
        "X-Bank": seeded.bank,
      };
      return send({ ...request, headers });
    },
    /** Requests without a signature: the first check that needs one refuses them. */
    async unsigned(count) {
      const one = () =>
        new Promise((resolve, reject) => {
          const sent = httpRequest(`${platform}${path}`, { method: "POST", agent }, (answer) => {
            answer.resume().once("end", resolve);
          });
          sent.once("error", reject).end("{}");
        });
      for (let sent = 0; sent < count; sent += 50)
        await Promise.all(Array.from({ length: Math.min(50, count - sent) }, one));
    },
    async close() {
      agent.destroy();
      await inspector.close();
      server.closeAllConnections();
      server.close();
      stores.close();
      database.close();
    },
  };
}
