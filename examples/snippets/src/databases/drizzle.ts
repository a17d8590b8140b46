import { fromDrizzle } from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createPostgresStores } from "@countersign/store-postgres";
import type { NodePgDatabase } from "drizzle-orm/node-postgres";
import { pgTable, text } from "drizzle-orm/pg-core";
import { service } from "./service.ts";

const payments = pgTable("payments", {
  key: text().primaryKey(),
  iban: text().notNull(),
});

export function payouts(db: NodePgDatabase) {
  // On MariaDB: createMysqlStores, of @countersign/store-mysql.
  const stores = createPostgresStores({ database: fromDrizzle(db) });
  return payoutEndpoint({
    ...service,
    stores,
    async pay({ idempotencyKey: key, beneficiary }, { tx }) {
      await tx.insert(payments).values({ key, iban: beneficiary.iban });
    },
  });
}

// Mount it: app.post("/api/v1/transaction", payouts(db));
