import type { PayoutTransactionOptions } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import {
  createWebhookHandler,
  type WebhookHandler,
} from "countersign/webhooks";
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

/** What a payout has to satisfy, on Express and on Fastify. */
export const payoutOptions: PayoutTransactionOptions<
  Database.Database,
  "sync",
  object
> = {
  addresses: { allow: setting("ALLOW_IPS").split(",") },
  signature: { keys: { [setting("KEYID")]: setting("PUBLIC_KEY") } },
  stores,
  // In one transaction with the payout's key: it stays when this returns.
  pay: ({ idempotencyKey, beneficiary }) =>
    insertPayout.run(idempotencyKey, beneficiary.iban),
};

export const handler: WebhookHandler<unknown> = createWebhookHandler({
  stores,
  fallback: ({ event_id, data }) =>
    insertEvent.run(event_id, JSON.stringify(data)),
});

/** The same for a webhook. */
export const webhookOptions = {
  basicAuth: {
    username: setting("WEBHOOK_USERNAME"),
    password: setting("WEBHOOK_PASSWORD"),
  },
  hmac: { secret: setting("WEBHOOK_SECRET") },
  handler,
};

export function closeRecords(): void {
  stores.close();
  database.close();
}

export function setting(name: string): string {
  const value = process.env[name];
  if (value) return value;
  throw new Error(`${name} is not set`);
}
