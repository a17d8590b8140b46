// What READMEs show second: work that is not in the database of the keys.
import { payoutPlugin } from "@countersign/fastify";
import { payoutRoute } from "@countersign/fetch";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import type { RequestIdempotency } from "@countersign/idempotency-guard";
import type { Payout } from "countersign/payout";
import { withPostgresTransaction } from "@countersign/store-sql/postgres";
import { withImmediateTransaction } from "@countersign/store-sql/sqlite";
import { createWebhookHandler } from "countersign/webhooks";
import type Database from "libsql";
import type { Pool } from "pg";

const addresses = { allow: ["192.0.2.10"] };
const keys = {
  "test-key-ed25519": "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=",
};
const nonces = memoryNonceStore();
const store = memoryIdempotencyStore();
const bank = { order: async (_payout: Payout): Promise<void> => {} };
async function order(
  payout: Payout,
  idempotency: RequestIdempotency,
): Promise<string> {
  idempotency.hold("the bank was asked");
  await bank.order(payout);
  return "ordered";
}
const mail = { send: async (_buyer: string): Promise<void> => {} };

// #region fastify
const payouts = payoutPlugin({
  url: "/api/v1/transaction",
  addresses,
  signature: { keys, nonces },
  idempotency: { store },
  // Say idempotency.hold(reason) before you ask the bank.
  handler: (_request, _reply, { payout, idempotency }) =>
    order(payout, idempotency),
});
// #endregion fastify

// #region fetch
const receivePayout = payoutRoute(
  { addresses, signature: { keys, nonces }, idempotency: { store } },
  async (_request, { payout, idempotency }) => {
    idempotency.hold("the bank was asked"); // a failure is an operator's
    await bank.order(payout);
    return new Response();
  },
);
// #endregion fetch

// #region webhooks
const handler = createWebhookHandler({ store, fallback: "ignore" });
handler.on("buyer.status_changed", ({ data }) => mail.send(data.buyer_id));
// #endregion webhooks

export { handler, payouts, receivePayout };

export function onSqlite(
  database: Database.Database,
  idempotency: RequestIdempotency,
): void {
  // #region store-sqlite
  withImmediateTransaction(database, (tx) => {
    void idempotency.completeIn(tx); // First: throws unless the key is ours.
    tx.prepare("INSERT INTO payouts VALUES (?)").run(idempotency.key);
  });
  // #endregion store-sqlite
}

export async function onPostgres(
  payments: Pool,
  idempotency: RequestIdempotency,
): Promise<void> {
  // #region store-postgres
  await withPostgresTransaction(payments, async (client) => {
    // First: throws unless the key is ours.
    await idempotency.completeIn(client);
    await client.query("INSERT INTO payouts VALUES ($1)", [idempotency.key]);
  });
  // #endregion store-postgres
}
