import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint, payoutOf } from "@countersign/payout";
import express, { type Express } from "express";

export const app: Express = express();

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here, and a durable store below.
const keys = { "test-key-ed25519": "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=" };
const receivePayout = payoutEndpoint({
  addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
  signature: { keys, nonces: memoryNonceStore() },
  idempotency: { store: memoryIdempotencyStore() },
  findBusiness: ({ iban, businessId }) => iban === "DE89370400440532013000" && businessId === "biz_1",
});

app.post("/api/v1/transaction", receivePayout, (req, res) => {
  const { idempotencyKey, beneficiary, amountText } = payoutOf(req);
  res.json({ accepted: idempotencyKey, to: beneficiary.iban, amount: amountText("/value") });
});
