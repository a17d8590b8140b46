import {
  captureRawBody,
  payoutEndpoint,
  type Payout,
} from "countersign/payout";
import type { SqliteStores } from "@countersign/store-sql";
import express, { type Express } from "express";

/** `keys`: the service's public keys by keyid. `pay` writes the payout. */
export function createApp(
  keys: Readonly<Record<string, string>>,
  stores: SqliteStores,
  pay: (payout: Payout) => void,
): Express {
  const receivePayout = payoutEndpoint({
    addresses: { allow: ["192.0.2.10"] },
    signature: { keys },
    stores,
    pay,
  });
  const app = express();
  // The parser hands over the bytes that it saw.
  // #region route
  // #region parser
  app.use(express.json({ verify: captureRawBody }));
  // #endregion parser
  app.post("/api/v1/transaction", receivePayout);
  // #endregion route
  return app;
}
