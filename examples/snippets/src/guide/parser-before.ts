import { captureRawBody, payoutEndpoint, type PayoutEndpointOptions } from "@countersign/payout";
import express, { type Express, type RequestHandler } from "express";

export function createApp(payouts: PayoutEndpointOptions, pay: RequestHandler): Express {
  const app = express();
  app.use(express.json({ verify: captureRawBody })); // the parser hands over the bytes that it saw
  app.post("/api/v1/transaction", payoutEndpoint(payouts), pay);
  return app;
}
