import { payoutEndpoint } from "@countersign/payout";
import { createSqliteStores } from "@countersign/store-sqlite";
import type Database from "libsql";
import { service } from "./service.ts";

// Your table: payments (key TEXT PRIMARY KEY, iban TEXT NOT NULL).
export function payouts(database: Database.Database) {
  const stores = createSqliteStores({ database });
  const insert = "INSERT INTO payments (key, iban) VALUES (?, ?)";
  return payoutEndpoint({
    ...service,
    stores,
    pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      tx.prepare(insert).run(key, iban);
    },
  });
}

// Mount it: app.post("/api/v1/transaction", payouts(database));
