import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import {
  gracefulClose,
  payoutRoute,
  webhookRoute,
  type FetchRoute,
} from "@countersign/fetch";
import { createStores } from "@countersign/store-sql";
import { createWebhookHandler } from "countersign/webhooks";
import Koa, { type Context } from "koa";
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
const receiveWebhook = webhookRoute({
  basicAuth: {
    username: setting("WEBHOOK_USERNAME"),
    password: setting("WEBHOOK_PASSWORD"),
  },
  hmac: { secret: setting("WEBHOOK_SECRET") },
  handler,
  hide: () =>
    new Response("Not Found", {
      status: 404,
      headers: { "Content-Type": "text/plain; charset=utf-8" },
    }),
});
const routes: Readonly<Record<string, FetchRoute | undefined>> = {
  "/api/v1/transaction": receivePayout,
  [setting("WEBHOOK_PATH")]: receiveWebhook,
};

// proxy: Koa believes whoever connects, so nobody but the proxy may: it
// listens on loopback. One hop: the last address counts.
const app = new Koa({ proxy: true, maxIpsCount: 1 });
// Before any body parser: the routes read the bytes themselves.
app.use(async (ctx, next) => {
  const route = routes[ctx.path];
  if (route === undefined) {
    await next();
    return;
  }
  const scheme = ctx.protocol === "https" ? "https" : "http";
  const { url: target, rawHeaders } = ctx.req;
  const response = await route(requestOf(ctx), {
    clientAddress: ctx.ip,
    scheme,
    target,
    rawHeaders,
  });
  ctx.status = response.status;
  ctx.body = Buffer.from(await response.arrayBuffer());
  ctx.set(Object.fromEntries(response.headers));
});

/** The Request that Koa was sent, its body unread. */
function requestOf({ req, path }: Context): Request {
  const { method = "GET" } = req;
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(new URL(path, "http://platform.invalid"), {
    method,
    headers: headersOf(req),
    ...(hasBody ? { body: Readable.toWeb(req), duplex: "half" } : {}),
  });
}

/** Each line as it came: req.headers has lost the second one of a field. */
function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    headers.append(rawHeaders[index] ?? "", rawHeaders[index + 1] ?? "");
  }
  return headers;
}

const server = app.listen(Number(setting("PORT")), "127.0.0.1", () => {
  const address = server.address();
  if (address !== null && typeof address === "object") {
    console.log(`listening on http://127.0.0.1:${address.port}`);
  }
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
