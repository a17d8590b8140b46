import { createSqliteStores, withImmediateTransaction } from "@countersign/store-sqlite";
import { createWebhookHandler } from "@countersign/webhooks";
import Database from "libsql";

const database = new Database(setting("DATABASE_FILE"));
const stores = createSqliteStores({ database });
database.exec(`CREATE TABLE IF NOT EXISTS payouts (idempotency_key TEXT PRIMARY KEY, iban TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS events (event_id TEXT PRIMARY KEY, event TEXT NOT NULL) STRICT`);
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
const insertEvent = database.prepare("INSERT INTO events VALUES (?, ?)");

/** What a payout has to satisfy, on Express and on Fastify. */
export const payoutOptions = {
  addresses: { allow: setting("ALLOW_IPS").split(",") },
  signature: { keys: { [setting("KEYID")]: setting("PUBLIC_KEY") }, nonces: stores.nonces },
  idempotency: { store: stores.idempotency, recovery: "rerun" },
} as const;

export const handler = createWebhookHandler({
  store: stores.idempotency,
  fallback: (event, context) =>
    withImmediateTransaction(database, (tx) => {
      const completed = context.completeIn(tx);
      insertEvent.run(event.event_id, JSON.stringify(event.data));
      return completed;
    }),
});

/** The same for a webhook. */
export const webhookOptions = {
  basicAuth: { username: setting("WEBHOOK_USERNAME"), password: setting("WEBHOOK_PASSWORD") },
  hmac: { secret: setting("WEBHOOK_SECRET") },
  handler,
};

/** The payout and the end of its key, in one transaction. Throws when the key is somebody else's, or paid. */
export function pay(
  { idempotencyKey, beneficiary }: { idempotencyKey: string; beneficiary: { iban: string } },
  idempotency: { completeIn(transaction: object): unknown } | undefined,
): void {
  withImmediateTransaction(database, (tx) => {
    const completed = idempotency?.completeIn(tx);
    insertPayout.run(idempotencyKey, beneficiary.iban);
    return completed;
  });
}

export function closeRecords(): void {
  stores.close();
  database.close();
}

export function setting(name: string): string {
  const value = process.env[name];
  if (value) return value;
  throw new Error(`${name} is not set`);
}
