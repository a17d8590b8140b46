import {
  createSqliteStores,
  createWebhookHandler,
  payoutEndpoint,
  payoutOf,
  webhookEndpoint,
} from "countersign";
import type { GeneratedEndpoint } from "countersign";
import express, { type Express } from "express";
import Database from "libsql";

/** `keys`: the service's Ed25519 keys by keyid. `endpoint`: what generateEndpoint() made up. */
export function createApp(keys: Record<string, string>, endpoint: GeneratedEndpoint, file: string): Express {
  const { idempotency: store, nonces } = createSqliteStores({ database: new Database(file) });
  const addresses = { allow: ["192.0.2.10", "198.51.100.0/28"] }; // from where the service calls
  const receivePayout = payoutEndpoint({ addresses, signature: { keys, nonces }, idempotency: { store } });
  const handler = createWebhookHandler({ store, fallback: (event) => console.log("handle", event.type) });
  const { path, username, password, secret } = endpoint;
  const app = express();
  app.set("trust proxy", "loopback"); // the proxy that ends TLS: webhooks come over https alone
  app.use(path, webhookEndpoint({ basicAuth: { username, password }, hmac: { secret }, handler }));
  app.post("/api/v1/transaction", receivePayout, (req, res) => {
    console.log("pay", payoutOf(req).idempotencyKey);
    res.json({ status: "acknowledged" }); // from now on this payout is answered with 409
  });
  return app;
}
