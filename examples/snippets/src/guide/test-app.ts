import { payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import {
  createWebhookHandler,
  webhookEndpoint,
  type WebhookEndpointOptions,
} from "countersign/webhooks";
import express, { type Express } from "express";
import type Database from "libsql";

/** What differs from production. */
interface Differs {
  readonly database: Database.Database;
  readonly keys: Readonly<Record<string, string>>;
  readonly webhooks: Omit<WebhookEndpointOptions, "handler">;
}

/** The app under test. */
export function createApp({ database, keys, webhooks }: Differs): Express {
  database.exec(`
    CREATE TABLE IF NOT EXISTS payouts (key TEXT PRIMARY KEY) STRICT;
    CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY) STRICT`);
  const insertPayout = database.prepare("INSERT INTO payouts VALUES (?)");
  const insertEvent = database.prepare("INSERT INTO events VALUES (?)");
  const stores = createStores({ database });
  const receivePayout = payoutEndpoint({
    addresses: { allow: ["127.0.0.1"] },
    signature: { keys },
    stores,
    pay: ({ idempotencyKey }) => insertPayout.run(idempotencyKey),
  });
  const handler = createWebhookHandler({
    stores,
    fallback: ({ event_id }) => insertEvent.run(event_id),
  });
  const app = express();
  app.post("/api/v1/transaction", receivePayout);
  app.use("/webhooks/3f9a", webhookEndpoint({ ...webhooks, handler }));
  return app;
}
