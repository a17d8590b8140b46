import { readFileSync } from "node:fs";
import {
  createStores,
  createWebhookHandler,
  payoutEndpoint,
  webhookEndpoint,
} from "countersign";
import express from "express";
import Database from "libsql";

const database = new Database("platform.db");
database.exec(`
  CREATE TABLE IF NOT EXISTS payouts
    (idempotency_key TEXT PRIMARY KEY, iban TEXT) STRICT;
  CREATE TABLE IF NOT EXISTS events
    (event_id TEXT PRIMARY KEY, type TEXT) STRICT`);
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
const insertEvent = database.prepare("INSERT INTO events VALUES (?, ?)");
const stores = createStores({ database });

const receivePayout = payoutEndpoint({
  addresses: { allow: ["192.0.2.10"] }, // From where the service calls.
  signature: { keys: JSON.parse(readFileSync("keys/keys.json", "utf8")) },
  stores,
  // In one transaction with the payout's key: it stays when this returns.
  pay: ({ idempotencyKey, beneficiary }) =>
    insertPayout.run(idempotencyKey, beneficiary.iban),
});
const receiveWebhook = webhookEndpoint({
  basicAuth: {
    username: process.env["WEBHOOK_USERNAME"] ?? "",
    password: process.env["WEBHOOK_PASSWORD"] ?? "",
  },
  hmac: { secret: process.env["WEBHOOK_SECRET"] ?? "" },
  handler: createWebhookHandler({
    stores,
    // In one transaction with the mark that the event is done.
    fallback: ({ event_id, type }) => insertEvent.run(event_id, type),
  }),
});

const app = express();
// Your proxy, which ends TLS and says who calls. On your own machine the
// command line plays it.
app.set("trust proxy", ["127.0.0.1"]);
app.post("/api/v1/transaction", receivePayout);
app.use("/webhooks/made-up", receiveWebhook);

const port = Number(process.env["PORT"] ?? 3000);
app.listen(port, "127.0.0.1", () => console.log(`listening on port ${port}`));
