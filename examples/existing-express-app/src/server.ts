import {
  captureRawBody,
  gracefulClose,
  payoutEndpoint,
} from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import { createWebhookHandler, webhookEndpoint } from "countersign/webhooks";
import express from "express";
import { rateLimit } from "express-rate-limit";
import session from "express-session";
import helmet from "helmet";
import Database from "libsql";

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
// nginx, by its address; never true.
app.set("trust proxy", setting("TRUST_PROXY").split(","));
app.use(helmet());
app.use(
  rateLimit({
    windowMs: 60_000,
    limit: 1_000,
    standardHeaders: "draft-8",
    legacyHeaders: false,
  }),
);
// The one change to what was there: the parser hands over the bytes.
app.use(express.json({ verify: captureRawBody }));
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
app.post("/api/v1/transaction", receivePayout);
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
