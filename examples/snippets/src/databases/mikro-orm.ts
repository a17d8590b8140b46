import { fromMikroOrm } from "@countersign/store-sql/mikro-orm";
import { gracefulClose, payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import { EntitySchema } from "@mikro-orm/core";
import type { MikroORM } from "@mikro-orm/postgresql";
import type { Express } from "express";
import { service } from "./service.js";

export const Payment = new EntitySchema<{ key: string; iban: string }>({
  name: "Payment",
  tableName: "payments",
  properties: {
    key: { type: "text", primary: true },
    iban: { type: "text" },
  },
});
export const Business = new EntitySchema<{ id: string; iban: string }>({
  name: "Business",
  tableName: "businesses",
  properties: {
    id: { type: "text", primary: true },
    iban: { type: "text", primary: true },
  },
});

// At the start: process.once("SIGTERM", await start(express(), orm));
export async function start(app: Express, orm: MikroORM) {
  const stores = createStores({ database: fromMikroOrm(orm) });
  await stores.ready(); // Rejects until `countersign migrate` has run.
  const receivePayout = payoutEndpoint({
    ...service,
    stores,
    findBusiness: async ({ businessId: id, iban }) =>
      (await orm.em.fork().count(Business, { id, iban })) === 1,
    pay({ idempotencyKey: key, beneficiary: { iban } }, { tx: em }) {
      em.persist(em.create(Payment, { key, iban }));
    },
  });
  app.post("/api/v1/transaction", receivePayout);
  const server = app.listen(process.env["PORT"] ?? 3000);
  const close = gracefulClose(server, { endpoints: [receivePayout] });
  return async () => {
    await close(); // What was received is answered.
    stores.close();
    await orm.close();
  };
}
