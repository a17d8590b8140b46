// What READMEs show second: work that is not in the database of the keys.
import { payoutPlugin } from "@countersign/fastify";
import { payoutRoute } from "@countersign/fetch";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import type { RequestIdempotency } from "@countersign/idempotency-guard";
import type { Payout } from "countersign/payout";
import { createWebhookHandler } from "countersign/webhooks";

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
