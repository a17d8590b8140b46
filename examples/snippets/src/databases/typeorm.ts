import { fromTypeOrm } from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createPostgresStores } from "@countersign/store-postgres";
import { type DataSource, EntitySchema } from "typeorm";
import { service } from "./service.ts";

export const Payment = new EntitySchema<{ key: string; iban: string }>({
  name: "payments",
  columns: { key: { type: "text", primary: true }, iban: { type: "text" } },
});

export function payouts(dataSource: DataSource) {
  // On MariaDB: createMysqlStores, of @countersign/store-mysql.
  const stores = createPostgresStores({ database: fromTypeOrm(dataSource) });
  return payoutEndpoint({
    ...service,
    stores,
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await tx.insert(Payment, { key, iban });
    },
  });
}

// Mount it: app.post("/api/v1/transaction", payouts(dataSource));
