import { payoutEndpoint, type SqliteStores } from "countersign";
import type { Express, RequestHandler } from "express";

export function receivePayouts(
  app: Express,
  stores: SqliteStores,
  publicKeyPem: string,
  pay: RequestHandler,
): void {
  const addresses = { allow: ["192.0.2.10", "198.51.100.0/28"] }; // from where the service calls
  const signature = { keys: { "service-2026": publicKeyPem }, nonces: stores.nonces }; // keyid -> its Ed25519 key
  const idempotency = { store: stores.idempotency }; // pay runs once for each payout, however often it is sent
  app.post("/api/v1/transaction", payoutEndpoint({ addresses, signature, idempotency }), pay);
}
