import { fromPg } from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createPostgresStores } from "@countersign/store-postgres";
import type { Express } from "express";
import { Pool } from "pg";

const stores = createPostgresStores({ database: fromPg(new Pool()) });

export function receivePayouts(
  app: Express,
  allow: readonly string[],
  keys: Readonly<Record<string, string>>,
): void {
  // #region hero
  const receivePayout = payoutEndpoint({
    addresses: { allow },
    signature: { keys },
    stores,
    pay: ({ idempotencyKey, beneficiary }, { tx }) =>
      tx.query("INSERT INTO payments VALUES ($1, $2)", [
        idempotencyKey,
        beneficiary.iban,
      ]),
  });
  app.post("/api/v1/transaction", receivePayout);
  // #endregion hero
}
