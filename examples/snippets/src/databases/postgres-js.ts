import { fromPostgresJs } from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createPostgresStores } from "@countersign/store-postgres";
import type { Sql } from "postgres";
import { service } from "./service.ts";

// Your table: payments (key text PRIMARY KEY, iban text NOT NULL).
export function payouts(sql: Sql) {
  const stores = createPostgresStores({ database: fromPostgresJs(sql) });
  return payoutEndpoint({
    ...service,
    stores,
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await tx`INSERT INTO payments (key, iban) VALUES (${key}, ${iban})`;
    },
  });
}

// Mount it: app.post("/api/v1/transaction", payouts(sql));
