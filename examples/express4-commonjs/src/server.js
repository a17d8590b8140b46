// A CommonJS project with Express 4: require() of the packages, which are ES modules, needs Node 20.19 or later.
const { gracefulClose, payoutEndpoint, payoutOf } = require("@countersign/payout");
const { createSqliteStores, withImmediateTransaction } = require("@countersign/store-sqlite");
const { createWebhookHandler, webhookEndpoint } = require("@countersign/webhooks");
const express = require("express4");
const Database = require("libsql");

const database = new Database(setting("DATABASE_FILE"));
const stores = createSqliteStores({ database });
database.exec(`CREATE TABLE IF NOT EXISTS payouts (idempotency_key TEXT PRIMARY KEY, iban TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS events (event_id TEXT PRIMARY KEY, event TEXT NOT NULL) STRICT`);
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
const insertEvent = database.prepare("INSERT INTO events VALUES (?, ?)");

const receivePayout = payoutEndpoint({
  addresses: { allow: setting("ALLOW_IPS").split(",") },
  signature: { keys: { [setting("KEYID")]: setting("PUBLIC_KEY") }, nonces: stores.nonces },
  idempotency: { store: stores.idempotency, recovery: "rerun" },
});
const handler = createWebhookHandler({
  store: stores.idempotency,
  fallback: (event, context) =>
    withImmediateTransaction(database, (tx) => {
      const completed = context.completeIn(tx);
      insertEvent.run(event.event_id, JSON.stringify(event.data));
      return completed;
    }),
});
const receiveWebhook = webhookEndpoint({
  basicAuth: { username: setting("WEBHOOK_USERNAME"), password: setting("WEBHOOK_PASSWORD") },
  hmac: { secret: setting("WEBHOOK_SECRET") },
  handler,
});

const app = express();
const proxies = process.env.TRUST_PROXY; // their addresses, never true; without one, nobody's X-Forwarded-For is believed
app.set("trust proxy", proxies ? proxies.split(",") : false);
app.post("/api/v1/transaction", receivePayout, (req, res) => {
  const { idempotencyKey, beneficiary } = payoutOf(req);
  // Express 4 knows nothing of promises: what throws here reaches next(), what an async handler rejects with would not.
  withImmediateTransaction(database, (tx) => {
    const completed = req.idempotency.completeIn(tx); // first: throws when the key is somebody else's, or paid
    insertPayout.run(idempotencyKey, beneficiary.iban);
    return completed;
  });
  res.json({ status: "acknowledged" });
});
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
