import {
  createSigner,
  signResponse,
} from "@countersign/http-signature-verify/sign";
import {
  payoutEndpoint,
  payoutOf,
  type PayoutEndpointOptions,
} from "countersign/payout";
import type { Express } from "express";

/**
 * Answers each payout with a receipt: a signature of the platform over the
 * answer and the request that it belongs to.
 */
export function receivePayouts(
  app: Express,
  payouts: PayoutEndpointOptions,
  privateKeyPem: string,
): void {
  const receipts = signResponse({
    signer: createSigner(privateKeyPem, "platform-2026"),
  });
  app.post(
    "/api/v1/transaction",
    receipts,
    payoutEndpoint(payouts),
    (req, res) => {
      res.json({
        status: "acknowledged",
        payout: payoutOf(req).idempotencyKey,
      });
    },
  );
}
