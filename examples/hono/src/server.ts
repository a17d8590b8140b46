import { gracefulClose, payoutRoute, webhookRoute } from "@countersign/fetch";
import { createStores } from "@countersign/store-sql";
import { createWebhookHandler } from "countersign/webhooks";
import { serve, type HttpBindings } from "@hono/node-server";
import { Hono, type Context } from "hono";
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

const receivePayout = payoutRoute({
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
const notFound = (): Response =>
  new Response("nothing here", { status: 404 });
const receiveWebhook = webhookRoute({
  basicAuth: {
    username: setting("WEBHOOK_USERNAME"),
    password: setting("WEBHOOK_PASSWORD"),
  },
  hmac: { secret: setting("WEBHOOK_SECRET") },
  handler,
  hide: notFound,
});

// #region connection
// Nobody where it is not set: then the socket alone says who calls.
const proxies = new Set(
  (process.env["TRUST_PROXY"] ?? "")
    .split(",")
    .filter((address) => address !== ""),
);

/**
 * Who calls and how: what a proxy of ours says, and of anybody else the
 * socket. Hono itself tells neither.
 */
function connection({ env, req }: Context<{ Bindings: HttpBindings }>) {
  const { remoteAddress } = env.incoming.socket;
  // As on the wire: the URL of a Request is normalised, its Headers are
  // merged.
  const { url: target, rawHeaders } = env.incoming;
  const sent = { target, rawHeaders };
  if (remoteAddress === undefined || !proxies.has(remoteAddress)) {
    return { ...sent, clientAddress: remoteAddress, scheme: "http" } as const;
  }
  // nginx replaces both fields; of several values the last is that of the
  // proxy in front.
  const clientAddress = req
    .header("X-Forwarded-For")
    ?.split(",")
    .at(-1)
    ?.trim();
  const scheme =
    req.header("X-Forwarded-Proto") === "https" ? "https" : "http";
  return { ...sent, clientAddress, scheme } as const;
}
// #endregion connection

const app = new Hono<{ Bindings: HttpBindings }>();
app.notFound(notFound);
app.all("/api/v1/transaction", (c) =>
  receivePayout(c.req.raw, connection(c)),
);
app.all(setting("WEBHOOK_PATH"), (c) =>
  receiveWebhook(c.req.raw, connection(c)),
);

const place = { port: Number(setting("PORT")), hostname: "127.0.0.1" };
const server = serve({ fetch: app.fetch, ...place }, ({ port }) => {
  console.log(`listening on http://127.0.0.1:${port}`);
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
