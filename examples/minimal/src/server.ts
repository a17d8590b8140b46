import { gracefulClose, payoutEndpoint, refuse } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import { createWebhookHandler, webhookEndpoint } from "countersign/webhooks";
import express from "express";
import Database from "libsql";

const database = new Database(setting("DATABASE_FILE"));
const stores = createStores({ database });
database.exec(`
  CREATE TABLE IF NOT EXISTS businesses (
    id TEXT, iban TEXT, PRIMARY KEY (id, iban)) STRICT;
  CREATE TABLE IF NOT EXISTS payouts (
    idempotency_key TEXT PRIMARY KEY, instruction TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS events (
    event_id TEXT PRIMARY KEY, type TEXT NOT NULL,
    event TEXT NOT NULL) STRICT`);
const selectBusiness = database.prepare(
  "SELECT 1 FROM businesses WHERE id = ? AND iban = ?",
);
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
const insertEvent = database.prepare("INSERT INTO events VALUES (?, ?, ?)");
// More than zero, with at most two decimals: "10.10", not "-5" or "1e3".
const anAmount = /^(?=.*[1-9])\d{1,15}(\.\d{1,2})?$/;

const receivePayout = payoutEndpoint({
  addresses: { allow: setting("ALLOW_IPS").split(",") },
  signature: { keys: { [setting("KEYID")]: setting("PUBLIC_KEY") } },
  stores,
  findBusiness: ({ businessId, iban }) =>
    selectBusiness.get(businessId, iban) !== undefined,
  // In one transaction with the payout's key: it stays when this returns.
  pay({ idempotencyKey, amountText, bodyText }) {
    const amount = amountText("/value") ?? "";
    if (!anAmount.test(amount)) throw refuse("amount-invalid");
    insertPayout.run(idempotencyKey, bodyText());
  },
});
const handler = createWebhookHandler({
  stores,
  fallback: ({ event_id, type, data }) =>
    insertEvent.run(event_id, type, JSON.stringify(data)),
});
const receiveWebhook = webhookEndpoint({
  basicAuth: {
    username: setting("WEBHOOK_USERNAME"),
    password: setting("WEBHOOK_PASSWORD"),
  },
  hmac: { secret: setting("WEBHOOK_SECRET") },
  handler,
});
const app = express().disable("x-powered-by");
// The proxy that ends TLS: webhooks come over https alone.
app.set("trust proxy", setting("TRUST_PROXY").split(","));
app.use(setting("WEBHOOK_PATH"), receiveWebhook);
app.post("/api/v1/transaction", receivePayout);
const server = app.listen(Number(setting("PORT")), "127.0.0.1", (error) => {
  if (error) throw error;
  console.log(`listening on port ${setting("PORT")}`);
});
const close = gracefulClose(server, { endpoints: [receivePayout, handler] });
process.once("SIGTERM", async () => {
  await close(); // what was received is answered
  stores.close();
  database.close();
});
function setting(name: string): string {
  const value = process.env[name];
  if (value) return value;
  throw new Error(`${name} is not set`);
}
