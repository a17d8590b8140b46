import { fromSequelize } from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createPostgresStores } from "@countersign/store-postgres";
import type { Model, ModelStatic, Sequelize } from "sequelize";
import { service } from "./service.ts";

export function payouts(sequelize: Sequelize, Payment: ModelStatic<Model>) {
  const stores = createPostgresStores({ database: fromSequelize(sequelize) });
  return payoutEndpoint({
    ...service,
    stores,
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await Payment.create({ key, iban }, { transaction: tx });
    },
  });
}
