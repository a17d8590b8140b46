import { gracefulClose, payoutPlugin } from "@countersign/fastify";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { fastify } from "fastify";

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here, and durable stores below.
const testKey = "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=";

const payouts = payoutPlugin({
  url: "/api/v1/transaction",
  addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
  signature: { keys: { "test-key-ed25519": testKey }, nonces: memoryNonceStore() },
  idempotency: { store: memoryIdempotencyStore() },
  handler: (_request, _reply, { payout }) => ({ accepted: payout.idempotencyKey }),
});

export const app = fastify();
void app.register(payouts);
export const close = gracefulClose(app.server, { endpoints: [payouts] });
