import { fromSequelize } from "@countersign/store-sql/sequelize";
import { gracefulClose, payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import type { Express } from "express";
import type { Model, ModelStatic, Sequelize } from "sequelize";
import { service } from "./service.js";

interface Models {
  readonly Payment: ModelStatic<Model>; // with key and iban
  readonly Business: ModelStatic<Model>; // with id and iban: whom you pay
}

// At the start:
// process.once("SIGTERM", await start(express(), sequelize, models));
export async function start(
  app: Express,
  sequelize: Sequelize,
  { Payment, Business }: Models,
) {
  const stores = createStores({ database: fromSequelize(sequelize) });
  await stores.ready(); // Rejects until `countersign migrate` has run.
  const receivePayout = payoutEndpoint({
    ...service,
    stores,
    findBusiness: async ({ businessId: id, iban }) =>
      (await Business.count({ where: { id, iban } })) === 1,
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await Payment.create({ key, iban }, { transaction: tx });
    },
  });
  app.post("/api/v1/transaction", receivePayout);
  const server = app.listen(process.env["PORT"] ?? 3000);
  const close = gracefulClose(server, { endpoints: [receivePayout] });
  return async () => {
    await close(); // What was received is answered.
    stores.close();
    await sequelize.close();
  };
}
