import { payoutEndpoint, type SqliteStores } from "countersign";
import express, { type Express, type RequestHandler } from "express";

/** `keys`: the service's public keys by keyid. `pay` runs once per payout. */
export function createApp(
  keys: Readonly<Record<string, string>>,
  stores: SqliteStores,
  pay: RequestHandler,
): Express {
  const app = express();
  // The addresses of your proxies, never `true`: req.ip is then the caller.
  app.set("trust proxy", ["10.0.0.5"]);
  const receivePayout = payoutEndpoint({
    addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
    signature: { keys, nonces: stores.nonces },
    idempotency: { store: stores.idempotency },
  });
  app.post("/api/v1/transaction", receivePayout, pay);
  return app;
}
