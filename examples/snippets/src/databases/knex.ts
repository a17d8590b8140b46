import { fromKnex } from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createPostgresStores } from "@countersign/store-postgres";
import type { Knex } from "knex";
import { service } from "./service.ts";

export function payouts(knex: Knex) {
  const stores = createPostgresStores({ database: fromKnex(knex) });
  return payoutEndpoint({
    ...service,
    stores,
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await tx("payments").insert({ key, iban });
    },
  });
}
