import {
  gracefulClose,
  payoutPlugin,
  webhookPlugin,
} from "@countersign/fastify";
import { createStores } from "@countersign/store-sql";
import { createWebhookHandler } from "countersign/webhooks";
import { fastify, type FastifyRequest } from "fastify";
import Database from "libsql";

const database = new Database(setting("DATABASE_FILE"));
const stores = createStores({ database });
database.exec(`
  CREATE TABLE IF NOT EXISTS businesses
    (id TEXT, iban TEXT, PRIMARY KEY (id, iban)) STRICT;
  -- The sandbox's: whom you pay comes from your records.
  INSERT OR IGNORE INTO businesses
    VALUES ('business-1', 'DE89370400440532013000');
  CREATE TABLE IF NOT EXISTS payouts
    (idempotency_key TEXT PRIMARY KEY, iban TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS events
    (event_id TEXT PRIMARY KEY, event TEXT NOT NULL) STRICT`);
const selectBusiness = database.prepare(
  "SELECT 1 FROM businesses WHERE id = ? AND iban = ?",
);
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
const insertEvent = database.prepare("INSERT INTO events VALUES (?, ?)");

// The proxies' addresses, never true. Without one, X-Forwarded-For is not
// believed.
const proxies = process.env["TRUST_PROXY"];
const app = fastify({ trustProxy: proxies ? proxies.split(",") : false });
// Who calls and how is what Fastify makes of these proxies: the plugins
// believe no header by themselves.
const connection = {
  clientAddress: (request: FastifyRequest) => request.ip,
  scheme: (request: FastifyRequest) => request.protocol,
};
const payouts = payoutPlugin({
  addresses: { allow: setting("ALLOW_IPS").split(",") },
  signature: { keys: { [setting("KEYID")]: setting("PUBLIC_KEY") } },
  url: "/api/v1/transaction",
  ...connection,
  stores,
  findBusiness: ({ businessId, iban }) =>
    selectBusiness.get(businessId, iban) !== undefined,
  // In one transaction with the payout's key: it stays when this returns.
  pay: ({ idempotencyKey, beneficiary }) =>
    insertPayout.run(idempotencyKey, beneficiary.iban),
});
const handler = createWebhookHandler({
  stores,
  fallback: ({ event_id, data }) =>
    insertEvent.run(event_id, JSON.stringify(data)),
});
const webhooks = webhookPlugin({
  basicAuth: {
    username: setting("WEBHOOK_USERNAME"),
    password: setting("WEBHOOK_PASSWORD"),
  },
  hmac: { secret: setting("WEBHOOK_SECRET") },
  url: setting("WEBHOOK_PATH"),
  ...connection,
  handler,
});

// After parsers of your own, so that a hidden webhook is like an unknown
// route.
void app.register(payouts);
void app.register(webhooks);
app.addHook("onClose", async () => {
  stores.close();
  database.close();
});
const close = gracefulClose(app.server, { endpoints: [payouts, handler] });

const port = Number(setting("PORT"));
console.log(`listening on ${await app.listen({ port, host: "127.0.0.1" })}`);
process.once("SIGTERM", async () => {
  // First: while Fastify itself closes, it refuses what arrives.
  await close();
  await app.close();
});

function setting(name: string): string {
  const value = process.env[name];
  if (value) return value;
  throw new Error(`${name} is not set`);
}
