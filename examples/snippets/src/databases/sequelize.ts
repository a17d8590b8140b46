import { fromSequelize } from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createPostgresStores } from "@countersign/store-postgres";
import type { Model, ModelStatic, Sequelize } from "sequelize";
import { service } from "./service.ts";

// Payment: your model, with the columns key and iban.
export function payouts(sequelize: Sequelize, Payment: ModelStatic<Model>) {
  // On MariaDB: createMysqlStores, of @countersign/store-mysql.
  const stores = createPostgresStores({ database: fromSequelize(sequelize) });
  return payoutEndpoint({
    ...service,
    stores,
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await Payment.create({ key, iban }, { transaction: tx });
    },
  });
}

// Mount it: app.post("/api/v1/transaction", payouts(sequelize, Payment));
