import { payoutEndpoint, type Payout, type SqliteStores } from "countersign";
import express, { type Express } from "express";

/** `keys`: the service's public keys by keyid. `pay` writes the payout. */
export function createApp(
  keys: Readonly<Record<string, string>>,
  stores: SqliteStores,
  pay: (payout: Payout) => void,
): Express {
  const app = express();
  // The addresses of your proxies, never `true`: req.ip is then the caller.
  app.set("trust proxy", ["10.0.0.5"]);
  const receivePayout = payoutEndpoint({
    addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
    signature: { keys },
    stores,
    pay,
  });
  app.post("/api/v1/transaction", receivePayout);
  return app;
}
