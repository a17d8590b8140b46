import { fromKysely } from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createPostgresStores } from "@countersign/store-postgres";
import type { Kysely } from "kysely";
import { service } from "./service.ts";

interface Tables {
  payments: { key: string; iban: string };
}

export function payouts(db: Kysely<Tables>) {
  // On MariaDB: createMysqlStores, of @countersign/store-mysql.
  const stores = createPostgresStores({ database: fromKysely(db) });
  return payoutEndpoint({
    ...service,
    stores,
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await tx.insertInto("payments").values({ key, iban }).execute();
    },
  });
}

// Mount it: app.post("/api/v1/transaction", payouts(db));
