import { fromKnex } from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createPostgresStores } from "@countersign/store-postgres";
import type { Knex } from "knex";
import { service } from "./service.ts";

// Your table: payments (key text PRIMARY KEY, iban text NOT NULL).
export function payouts(knex: Knex) {
  // On MariaDB: createMysqlStores, of @countersign/store-mysql.
  const stores = createPostgresStores({ database: fromKnex(knex) });
  return payoutEndpoint({
    ...service,
    stores,
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await tx("payments").insert({ key, iban });
    },
  });
}

// Mount it: app.post("/api/v1/transaction", payouts(knex));
