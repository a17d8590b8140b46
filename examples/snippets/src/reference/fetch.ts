import {
  payoutRoute,
  webhookRoute,
  type FetchRoute,
} from "@countersign/fetch";
import { createStores } from "@countersign/store-sql";
import { createWebhookHandler } from "countersign/webhooks";
import Database from "libsql";

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here.
const keys = {
  "test-key-ed25519": "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=",
};

const database = new Database(process.env["DATABASE_FILE"] ?? ":memory:");
database.exec(
  `CREATE TABLE IF NOT EXISTS payouts
    (idempotency_key TEXT PRIMARY KEY, iban TEXT) STRICT`,
);
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
const stores = createStores({ database });

export const receivePayout: FetchRoute = payoutRoute({
  addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
  signature: { keys },
  stores,
  // In one transaction with the payout's key: it stays when this returns.
  pay: ({ idempotencyKey, beneficiary }) =>
    insertPayout.run(idempotencyKey, beneficiary.iban),
});

const events = createWebhookHandler({
  stores,
  fallback: ({ event_id, type }) =>
    console.log(`received ${type} ${event_id}`),
});

export const receiveWebhook: FetchRoute = webhookRoute({
  basicAuth: { username: "service", password: "test-password" },
  hmac: { secret: "test-secret" },
  handler: events,
});
