import { fromMikroOrm } from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createPostgresStores } from "@countersign/store-postgres";
import { EntitySchema } from "@mikro-orm/core";
import type { MikroORM } from "@mikro-orm/postgresql";
import { service } from "./service.ts";

export const Payment = new EntitySchema<{ key: string; iban: string }>({
  name: "Payment",
  tableName: "payments",
  properties: {
    key: { type: "text", primary: true },
    iban: { type: "text" },
  },
});

export function payouts(orm: MikroORM) {
  // On MariaDB: createMysqlStores, of @countersign/store-mysql.
  const stores = createPostgresStores({ database: fromMikroOrm(orm) });
  return payoutEndpoint({
    ...service,
    stores,
    pay({ idempotencyKey: key, beneficiary: { iban } }, { tx: em }) {
      em.persist(em.create(Payment, { key, iban }));
    },
  });
}

// Mount it: app.post("/api/v1/transaction", payouts(orm));
