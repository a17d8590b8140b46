import {
  createSqliteStores,
  createWebhookHandler,
  payoutEndpoint,
  payoutOf,
  webhookEndpoint,
  withImmediateTransaction,
  type GeneratedEndpoint,
} from "countersign";
import express, { type Express } from "express";
import Database from "libsql";

/** `keys` are the service's public Ed25519 keys by keyid, `endpoint` is what generateEndpoint() made up. */
export function createApp(keys: Record<string, string>, endpoint: GeneratedEndpoint, file: string): Express {
  const database = new Database(file);
  const { idempotency: store, nonces } = createSqliteStores({ database });
  database.exec(`CREATE TABLE IF NOT EXISTS payouts (idempotency_key TEXT PRIMARY KEY, iban TEXT NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS events (event_id TEXT PRIMARY KEY, type TEXT NOT NULL) STRICT`);
  const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
  const insertEvent = database.prepare("INSERT INTO events VALUES (?, ?)");

  const receivePayout = payoutEndpoint({
    addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] }, // from where the service calls
    signature: { keys, nonces },
    idempotency: { store, recovery: "rerun" }, // safe, since completeIn() is part of the transaction
  });
  const handler = createWebhookHandler({
    store,
    fallback: (event, context) =>
      withImmediateTransaction(database, (tx) => {
        const completed = context.completeIn(tx);
        insertEvent.run(event.event_id, event.type);
        return completed;
      }),
  });
  const { path, username, password, secret } = endpoint;
  const app = express();
  app.set("trust proxy", "loopback"); // the proxy that ends TLS: webhooks come over https alone
  app.use(path, webhookEndpoint({ basicAuth: { username, password }, hmac: { secret }, handler }));
  app.post("/api/v1/transaction", receivePayout, (req, res) => {
    const { idempotencyKey, beneficiary } = payoutOf(req);
    withImmediateTransaction(database, (tx) => {
      const completed = req.idempotency?.completeIn(tx); // first: throws when the key is somebody else's, or paid
      insertPayout.run(idempotencyKey, beneficiary.iban);
      return completed;
    });
    res.json({ status: "acknowledged" });
  });
  return app;
}
