import {
  createStores,
  createWebhookHandler,
  payoutEndpoint,
  webhookEndpoint,
  type GeneratedEndpoint,
} from "countersign";
import express, { type Express } from "express";
import Database from "libsql";

/**
 * `keys` are the service's public Ed25519 keys by keyid, `endpoint` is what
 * generateEndpoint() made up.
 */
export function createApp(
  keys: Record<string, string>,
  endpoint: GeneratedEndpoint,
  file: string,
): Express {
  const database = new Database(file);
  const stores = createStores({ database });
  database.exec(`
    CREATE TABLE IF NOT EXISTS payouts
      (idempotency_key TEXT PRIMARY KEY, iban TEXT NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS events
      (event_id TEXT PRIMARY KEY, type TEXT NOT NULL) STRICT`);
  const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
  const insertEvent = database.prepare("INSERT INTO events VALUES (?, ?)");

  const receivePayout = payoutEndpoint({
    // From where the service calls.
    addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
    signature: { keys },
    stores,
    // In one transaction with the payout's key: it stays when this returns.
    pay: ({ idempotencyKey, beneficiary }) =>
      insertPayout.run(idempotencyKey, beneficiary.iban),
  });
  const handler = createWebhookHandler({
    stores,
    fallback: ({ event_id, type }) => insertEvent.run(event_id, type),
  });
  const { path, username, password, secret } = endpoint;
  const app = express();
  // The proxy that ends TLS: webhooks come over https alone.
  app.set("trust proxy", "loopback");
  app.use(
    path,
    webhookEndpoint({
      basicAuth: { username, password },
      hmac: { secret },
      handler,
    }),
  );
  app.post("/api/v1/transaction", receivePayout);
  return app;
}
