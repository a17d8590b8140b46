import { payoutRoute, webhookRoute, type FetchRoute } from "@countersign/fetch";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { createWebhookHandler } from "@countersign/webhooks";

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here, and durable stores below.
const keys = { "test-key-ed25519": "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=" };

export const receivePayout: FetchRoute = payoutRoute(
  {
    addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
    signature: { keys, nonces: memoryNonceStore() },
    idempotency: { store: memoryIdempotencyStore() },
  },
  // Its answer leaves once the key is recorded as done.
  (_request, { payout }) => Response.json({ accepted: payout.idempotencyKey, to: payout.beneficiary.iban }),
);

const events = createWebhookHandler({
  store: memoryIdempotencyStore({ retentionMs: 72 * 3_600_000 }),
  fallback: ({ event_id, type }) => console.log(`received ${type} ${event_id}`),
});

export const receiveWebhook: FetchRoute = webhookRoute({
  basicAuth: { username: "service", password: "test-password" },
  hmac: { secret: "test-secret" },
  handler: events,
});
