import {
  gracefulClose,
  payoutPlugin,
  webhookPlugin,
} from "@countersign/fastify";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { createWebhookHandler } from "countersign/webhooks";
import { fastify } from "fastify";

export const app = fastify();

const payouts = payoutPlugin({
  addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
  signature: {
    keys: {
      "test-key-ed25519": "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=",
    },
    nonces: memoryNonceStore(),
  },
  idempotency: { store: memoryIdempotencyStore() },
  url: "/api/v1/transaction",
  handler: (_request, _reply, { payout }) => ({
    accepted: payout.idempotencyKey,
    to: payout.beneficiary.iban,
  }),
});

const events = createWebhookHandler({
  store: memoryIdempotencyStore(),
  fallback: ({ event_id, type }) =>
    console.log(`received ${type} ${event_id}`),
});
const webhooks = webhookPlugin({
  basicAuth: { username: "service", password: "test-password" },
  hmac: { secret: "test-secret" },
  url: "/hooks/3f9c2a7be1d04c55a1b2c3d4e5f60718",
  handler: events,
});

void app.register(payouts);
void app.register(webhooks);
// At SIGTERM: await close(), then app.close().
export const close = gracefulClose(app.server, {
  endpoints: [payouts, events],
});
