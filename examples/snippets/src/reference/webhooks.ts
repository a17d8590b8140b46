import { createStores } from "@countersign/store-sql";
import {
  createWebhookHandler,
  webhookEndpoint,
  type GeneratedEndpoint,
} from "countersign/webhooks";
import express, { type Express } from "express";
import Database from "libsql";

/**
 * `endpoint` is what generateEndpoint() made up, or `countersign endpoint
 * create --generate`.
 */
export function createApp(
  endpoint: GeneratedEndpoint,
  file = ":memory:",
): Express {
  const database = new Database(file);
  const { path, username, password, secret } = endpoint;
  const stores = createStores({ database });
  database.exec(
    `CREATE TABLE IF NOT EXISTS buyers
      (id TEXT PRIMARY KEY, status TEXT, changed_at TEXT) STRICT`,
  );
  // Webhooks come out of order: an older event changes nothing.
  const setStatus = database.prepare(
    `INSERT INTO buyers VALUES (?, ?, ?)
     ON CONFLICT (id) DO UPDATE
     SET status = excluded.status, changed_at = excluded.changed_at
     WHERE excluded.changed_at > changed_at`,
  );
  const handler = createWebhookHandler({ stores, fallback: "ignore" });
  // In one transaction with the mark that the event is done.
  handler.on("buyer.status_changed", ({ data, timestamp }) => {
    const changedAt = String(timestamp.epochNanoseconds).padStart(20, "0");
    setStatus.run(data.buyer_id, data.new_status, changedAt);
  });
  const app = express();
  // Before any body parser.
  app.use(
    path,
    webhookEndpoint({
      basicAuth: { username, password },
      hmac: { secret },
      handler,
    }),
  );
  return app;
}
