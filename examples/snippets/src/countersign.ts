import {
  createStores,
  createWebhookHandler,
  payoutEndpoint,
  webhookEndpoint,
} from "countersign";
import type { GeneratedEndpoint } from "countersign";
import express, { type Express } from "express";
import Database from "libsql";

/** `keys`: the service's by keyid. `endpoint`: of generateEndpoint(). */
export function createApp(
  keys: Record<string, string>,
  endpoint: GeneratedEndpoint,
  file: string,
): Express {
  const database = new Database(file);
  database.exec(
    "CREATE TABLE IF NOT EXISTS payouts (idempotency_key TEXT, iban TEXT)",
  );
  const insert = database.prepare("INSERT INTO payouts VALUES (?, ?)");
  const stores = createStores({ database });
  const receivePayout = payoutEndpoint({
    addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
    signature: { keys },
    stores,
    // When it has returned, this payout is answered with 409.
    pay: ({ idempotencyKey, beneficiary }) =>
      insert.run(idempotencyKey, beneficiary.iban),
  });
  const handler = createWebhookHandler({
    stores,
    fallback: (event) => console.log("handle", event.type),
  });
  const { path, username, password, secret } = endpoint;
  const receiveWebhook = webhookEndpoint({
    basicAuth: { username, password },
    hmac: { secret },
    handler,
  });
  const app = express();
  // The proxy that ends TLS: webhooks come over https alone.
  app.set("trust proxy", "loopback");
  app.use(path, receiveWebhook);
  app.post("/api/v1/transaction", receivePayout);
  return app;
}
