import { withDeadline } from "@countersign/core";
import { directoryKeys } from "@countersign/http-signature-verify";
import { consoleLog } from "@countersign/observe/log";
import { prometheus } from "@countersign/observe/prometheus";
import { createStores } from "@countersign/store-sql";
import { fromPg } from "@countersign/store-sql/pg";
import { gracefulClose, payoutEndpoint, refuse } from "countersign/payout";
import { createWebhookHandler, webhookEndpoint } from "countersign/webhooks";
import express from "express";
import { Pool } from "pg";
import { register } from "prom-client";

// To the journal. Without it nothing says why a request was refused:
// whoever subscribes, as prometheus() below does, takes the lines on stderr.
consoleLog();

// Three processes have 30 connections, of which 24 may have transactions.
const pool = new Pool({
  connectionString: setting("DATABASE_URL"),
  max: 10,
  connectionTimeoutMillis: 2_000,
});
pool.on("error", (error) => console.error("PostgreSQL:", error.message));
const stores = createStores({ database: fromPg(pool) });
const keys = directoryKeys(setting("KEYS"));
// systemctl reload: a key that was revoked is forgotten at once.
process.on("SIGHUP", () => keys.forget());
// Without tables or keys the process does not start.
await Promise.all([stores.ready(), keys.ready()]);

// More than zero, with at most two decimals: "10.10", not "-5" or "1e3".
const anAmount = /^(?=.*[1-9])\d{1,15}(\.\d{1,2})?$/;
const receivePayout = payoutEndpoint({
  addresses: { allow: setting("ALLOW_IPS").split(",") },
  signature: { keys },
  stores,
  async findBusiness({ businessId, iban }) {
    const select = "SELECT FROM businesses WHERE id = $1 AND iban = $2";
    return (await pool.query(select, [businessId, iban])).rowCount === 1;
  },
  async pay({ idempotencyKey, beneficiary, amountText }, { tx }) {
    // The field's name is agreed with the service.
    const amount = amountText("/value") ?? "";
    if (!anAmount.test(amount)) throw refuse("amount-invalid");
    const row = [idempotencyKey, beneficiary.iban, amount];
    await tx.query("INSERT INTO payments VALUES ($1, $2, $3)", row);
  },
});
const handler = createWebhookHandler({
  stores,
  async fallback({ event_id, type, data }, { tx }) {
    const row = [event_id, type, JSON.stringify(data)];
    await tx.query("INSERT INTO events VALUES ($1, $2, $3)", row);
  },
});
// The new one first, and the old one as long as it is in use.
const username = setting("WEBHOOK_USERNAME");
const passwords = setting("WEBHOOK_PASSWORDS").split(",");
const receiveWebhook = webhookEndpoint({
  basicAuth: {
    credentials: passwords.map((password) => ({ username, password })),
  },
  hmac: { secrets: setting("WEBHOOK_SECRETS").split(",") },
  handler,
});

const app = express().disable("x-powered-by");
app.set("trust proxy", ["127.0.0.1"]); // nginx, on the same machine
app.post("/api/v1/transaction", receivePayout);
app.use(setting("WEBHOOK_PATH"), receiveWebhook);

// These three are for this machine alone: nginx has no location for them.
prometheus({ heldKeys: { payouts: stores.idempotency } });
app.get("/metrics", async (_req, res) => {
  res.type(register.contentType).send(await register.metrics());
});
app.get("/livez", (_req, res) => void res.json({ live: true }));
let isStopping = false;
app.get("/readyz", async (_req, res) => {
  const ready = !isStopping && (await storeAnswers());
  res.status(ready ? 200 : 503).json({ ready });
});

/** True if the store answers in time. The key is never there. */
async function storeAnswers(): Promise<boolean> {
  const look = stores.idempotency.read("readyz");
  try {
    await withDeadline(look, 1_000, () => new Error("no answer in 1,000 ms"));
    return true;
  } catch (error) {
    console.error("not ready:", String(error));
    return false;
  }
}

const server = app.listen(Number(setting("PORT")), "127.0.0.1", (error) => {
  if (error) throw error;
  console.log(`listening on port ${setting("PORT")}`);
});
// Longer than transactionTimeoutMs, 10 seconds: four fifths of it are for
// requests. Shorter than TimeoutStopSec of the unit.
const endpoints = [receivePayout, handler];
const close = gracefulClose(server, { endpoints, timeoutMs: 20_000 });
process.once("SIGTERM", async () => {
  isStopping = true;
  await close(); // what was received is answered
  keys.close();
  stores.close();
  await pool.end();
});

function setting(name: string): string {
  const value = process.env[name];
  if (value) return value;
  throw new Error(`${name} is not set`);
}
