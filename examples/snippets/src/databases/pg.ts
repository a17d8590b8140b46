import { fromPg } from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createPostgresStores } from "@countersign/store-postgres";
import type { Pool } from "pg";
import { service } from "./service.ts";

// Your table: payments (key text PRIMARY KEY, iban text NOT NULL).
export function payouts(pool: Pool) {
  const stores = createPostgresStores({ database: fromPg(pool) });
  const insert = "INSERT INTO payments (key, iban) VALUES ($1, $2)";
  return payoutEndpoint({
    ...service,
    stores,
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await tx.query(insert, [key, iban]);
    },
  });
}

// Mount it: app.post("/api/v1/transaction", payouts(pool));
