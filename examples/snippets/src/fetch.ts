import { payoutRoute } from "@countersign/fetch";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here, and durable stores below.
const keys = { "test-key-ed25519": "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=" };

export const receivePayout = payoutRoute(
  {
    addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
    signature: { keys, nonces: memoryNonceStore() },
    idempotency: { store: memoryIdempotencyStore() },
  },
  (_request, { payout }) => Response.json({ accepted: payout.idempotencyKey }),
);
