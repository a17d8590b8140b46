import { captureRawBody, gracefulClose, payoutEndpoint, payoutOf } from "@countersign/payout";
import { createSqliteStores, withImmediateTransaction } from "@countersign/store-sqlite";
import { createWebhookHandler, webhookEndpoint } from "@countersign/webhooks";
import express from "express";
import { rateLimit } from "express-rate-limit";
import session from "express-session";
import helmet from "helmet";
import Database from "libsql";

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
app.set("trust proxy", setting("TRUST_PROXY").split(",")); // nginx, by its address; never true
app.use(helmet());
app.use(rateLimit({ windowMs: 60_000, limit: 1_000, standardHeaders: "draft-8", legacyHeaders: false }));
app.use(express.json({ verify: captureRawBody })); // the one change to what was there: the parser hands over the bytes
app.use(
  session({
    secret: setting("SESSION_SECRET"),
    resave: false,
    saveUninitialized: false, // no cookie for the service, which keeps none
    cookie: { secure: true, sameSite: "lax" },
  }),
);

// What the app had before.
app.post("/visits", (req, res) => {
  req.session.visits = (req.session.visits ?? 0) + 1;
  res.json({ visits: req.session.visits, page: req.body.page });
});

// What was added.
app.post("/api/v1/transaction", receivePayout, (req, res) => {
  const { idempotencyKey, beneficiary } = payoutOf(req);
  withImmediateTransaction(database, (tx) => {
    const completed = req.idempotency?.completeIn(tx); // first: throws when the key is somebody else's, or paid
    insertPayout.run(idempotencyKey, beneficiary.iban);
    return completed;
  });
  res.json({ status: "acknowledged" });
});
app.use(setting("WEBHOOK_PATH"), receiveWebhook);

const server = app.listen(Number(setting("PORT")), "127.0.0.1", (error) => {
  if (error) throw error;
  const address = server.address();
  if (address !== null && typeof address === "object") {
    console.log(`listening on http://127.0.0.1:${address.port}`);
  }
});
// #region close
const close = gracefulClose(server, { endpoints: [receivePayout, handler] });
process.once("SIGTERM", async () => {
  await close(); // what was received is answered
  stores.close();
  database.close();
});
// #endregion close

function setting(name: string): string {
  const value = process.env[name];
  if (value) return value;
  throw new Error(`${name} is not set`);
}

declare module "express-session" {
  interface SessionData {
    visits?: number;
  }
}
