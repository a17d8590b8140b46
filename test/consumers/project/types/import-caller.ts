// What a CommonJS file under nodenext can do before TypeScript 5.8.
import express from "express";

export async function load() {
  const { memoryNonceStore } = await import("@countersign/http-signature-verify");
  const { memoryIdempotencyStore } = await import("@countersign/idempotency");
  const { payoutEndpoint } = await import("countersign/payout");
  const app = express();
  app.post("/pay", (req, res) => {
    const iban: string | undefined = req.payout?.beneficiary.iban;
    res.json({ iban });
  });
  return { express, memoryNonceStore, memoryIdempotencyStore, payoutEndpoint };
}
