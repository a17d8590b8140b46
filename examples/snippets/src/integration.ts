import { payoutEndpoint, type SqliteStores } from "countersign";
import type { Express, RequestHandler } from "express";

export function receivePayouts(
  app: Express,
  stores: SqliteStores,
  publicKeyPem: string,
  pay: RequestHandler,
): void {
  const receivePayout = payoutEndpoint({
    // From where the service calls, and its Ed25519 key by keyid.
    addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
    signature: {
      keys: { "service-2026": publicKeyPem },
      nonces: stores.nonces,
    },
    // `pay` runs once for each payout, however often it is sent.
    idempotency: { store: stores.idempotency },
  });
  app.post("/api/v1/transaction", receivePayout, pay);
}
