import { payoutEndpoint, payoutOf } from "@countersign/payout";
import { createSqliteStores, withImmediateTransaction, type SqliteDatabase } from "@countersign/store-sqlite";
import type { Express } from "express";

export function mountPayouts(app: Express, database: SqliteDatabase, publicKeyPem: string): void {
  const { idempotency, nonces } = createSqliteStores({ database });
  const receivePayout = payoutEndpoint({
    keys: { "service-2026": publicKeyPem }, // keyid -> the service's Ed25519 public key
    allowIps: ["192.0.2.10", "198.51.100.0/28"], // the addresses that the service calls from
    nonces,
    store: idempotency,
    recovery: "rerun", // after a crash the retry may run, since payout and key commit together
  });
  const insert = database.prepare("INSERT INTO payouts (idempotency_key, iban) VALUES (?, ?)");

  app.post("/api/v1/transaction", receivePayout, (req, res) => {
    const { idempotencyKey, beneficiary } = payoutOf(req);
    withImmediateTransaction(database, (tx) => {
      const completed = req.idempotency?.completeIn(tx); // first: throws when the key is somebody else's, or paid
      insert.run(idempotencyKey, beneficiary.iban);
      return completed;
    });
    res.json({ status: "acknowledged" });
  });
}
