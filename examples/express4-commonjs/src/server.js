// A CommonJS project with Express 4: require() of the packages, which are ES
// modules, needs Node 20.19 or later.
const { gracefulClose, payoutEndpoint } = require("countersign/payout");
const { createStores } = require("@countersign/store-sql");
const {
  createWebhookHandler,
  webhookEndpoint,
} = require("countersign/webhooks");
const express = require("express4");
const Database = require("libsql");

const database = new Database(setting("DATABASE_FILE"));
const stores = createStores({ database });
database.exec(`
  CREATE TABLE IF NOT EXISTS payouts
    (idempotency_key TEXT PRIMARY KEY, iban TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS events
    (event_id TEXT PRIMARY KEY, event TEXT NOT NULL) STRICT`);
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
const insertEvent = database.prepare("INSERT INTO events VALUES (?, ?)");

const receivePayout = payoutEndpoint({
  addresses: { allow: setting("ALLOW_IPS").split(",") },
  signature: { keys: { [setting("KEYID")]: setting("PUBLIC_KEY") } },
  stores,
  // In one transaction with the payout's key: it stays when this returns.
  pay: ({ idempotencyKey, beneficiary }) =>
    insertPayout.run(idempotencyKey, beneficiary.iban),
});
const handler = createWebhookHandler({
  stores,
  fallback: ({ event_id, data }) =>
    insertEvent.run(event_id, JSON.stringify(data)),
});
const receiveWebhook = webhookEndpoint({
  basicAuth: {
    username: setting("WEBHOOK_USERNAME"),
    password: setting("WEBHOOK_PASSWORD"),
  },
  hmac: { secret: setting("WEBHOOK_SECRET") },
  handler,
});

const app = express();
// The proxies' addresses, never true. Without one, X-Forwarded-For is not
// believed.
const proxies = process.env.TRUST_PROXY;
app.set("trust proxy", proxies ? proxies.split(",") : false);
app.post("/api/v1/transaction", receivePayout);
app.use(setting("WEBHOOK_PATH"), receiveWebhook);

const server = app.listen(Number(setting("PORT")), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
const close = gracefulClose(server, { endpoints: [receivePayout, handler] });
process.once("SIGTERM", async () => {
  await close(); // what was received is answered
  stores.close();
  database.close();
});

function setting(name) {
  const value = process.env[name];
  if (value) return value;
  throw new Error(`${name} is not set`);
}
