import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint, payoutOf } from "@countersign/payout";
import express, { type Express } from "express";

/** The app under test, with what differs from production as its arguments. */
export function createApp(
  keys: Readonly<Record<string, string>>,
  paid: string[],
): Express {
  const receivePayout = payoutEndpoint({
    addresses: { allow: ["127.0.0.1"] },
    signature: { keys, nonces: memoryNonceStore() },
    idempotency: { store: memoryIdempotencyStore() },
  });
  const app = express();
  app.post("/api/v1/transaction", receivePayout, (req, res) => {
    paid.push(payoutOf(req).idempotencyKey);
    res.json({ status: "acknowledged" });
  });
  return app;
}
