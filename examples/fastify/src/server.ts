import { gracefulClose, payoutPlugin, webhookPlugin } from "@countersign/fastify";
import { createSqliteStores, withImmediateTransaction } from "@countersign/store-sqlite";
import { createWebhookHandler } from "@countersign/webhooks";
import { fastify, type FastifyRequest } from "fastify";
import Database from "libsql";

const database = new Database(setting("DATABASE_FILE"));
const stores = createSqliteStores({ database });
database.exec(`CREATE TABLE IF NOT EXISTS payouts (idempotency_key TEXT PRIMARY KEY, iban TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS events (event_id TEXT PRIMARY KEY, event TEXT NOT NULL) STRICT`);
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
const insertEvent = database.prepare("INSERT INTO events VALUES (?, ?)");

const proxies = process.env["TRUST_PROXY"]; // their addresses, never true; without one, nobody's X-Forwarded-For is believed
const app = fastify({ trustProxy: proxies ? proxies.split(",") : false });
// Who calls and how is what Fastify makes of these proxies: the plugins believe no header by themselves.
const connection = {
  clientAddress: (request: FastifyRequest) => request.ip,
  scheme: (request: FastifyRequest) => request.protocol,
};
const payouts = payoutPlugin({
  addresses: { allow: setting("ALLOW_IPS").split(",") },
  signature: { keys: { [setting("KEYID")]: setting("PUBLIC_KEY") }, nonces: stores.nonces },
  idempotency: { store: stores.idempotency, recovery: "rerun" },
  url: "/api/v1/transaction",
  ...connection,
  handler: (_request, _reply, { payout, idempotency }) => {
    withImmediateTransaction(database, (tx) => {
      const completed = idempotency.completeIn(tx); // first: throws when the key is somebody else's, or paid
      insertPayout.run(payout.idempotencyKey, payout.beneficiary.iban);
      return completed;
    });
    return { status: "acknowledged" };
  },
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
const webhooks = webhookPlugin({
  basicAuth: { username: setting("WEBHOOK_USERNAME"), password: setting("WEBHOOK_PASSWORD") },
  hmac: { secret: setting("WEBHOOK_SECRET") },
  url: setting("WEBHOOK_PATH"),
  ...connection,
  handler,
});

// Behind parsers of your own, so that a hidden webhook is like an unknown route.
void app.register(payouts);
void app.register(webhooks);
app.addHook("onClose", async () => {
  stores.close();
  database.close();
});
const close = gracefulClose(app.server, { endpoints: [payouts, handler] });

console.log(`listening on ${await app.listen({ port: Number(setting("PORT")), host: "127.0.0.1" })}`);
process.once("SIGTERM", async () => {
  await close(); // first: while Fastify itself closes, it refuses what arrives
  await app.close();
});

function setting(name: string): string {
  const value = process.env[name];
  if (value) return value;
  throw new Error(`${name} is not set`);
}
