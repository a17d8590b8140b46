import {
  captureRawBody,
  payoutEndpoint,
  type PayoutEndpointOptions,
} from "@countersign/payout";
import express, { type Express, type RequestHandler } from "express";

export function createApp(
  payouts: PayoutEndpointOptions,
  pay: RequestHandler,
): Express {
  const app = express();
  // The parser hands over the bytes that it saw.
  // #region parser
  app.use(express.json({ verify: captureRawBody }));
  // #endregion parser
  app.post("/api/v1/transaction", payoutEndpoint(payouts), pay);
  return app;
}
