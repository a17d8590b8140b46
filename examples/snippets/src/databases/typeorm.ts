import { fromTypeOrm } from "@countersign/store-sql/typeorm";
import { gracefulClose, payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import type { Express } from "express";
import { type DataSource, EntitySchema } from "typeorm";
import { service } from "./service.js";

export const Payment = new EntitySchema<{ key: string; iban: string }>({
  name: "payments",
  columns: { key: { type: "text", primary: true }, iban: { type: "text" } },
});
const primary = { type: "text", primary: true } as const;
export const Business = new EntitySchema<{ id: string; iban: string }>({
  name: "businesses",
  columns: { id: primary, iban: primary },
});

// At the start: process.once("SIGTERM", await start(express(), dataSource));
export async function start(app: Express, dataSource: DataSource) {
  const stores = createStores({ database: fromTypeOrm(dataSource) });
  await stores.ready(); // Rejects until `countersign migrate` has run.
  const receivePayout = payoutEndpoint({
    ...service,
    stores,
    findBusiness: ({ businessId: id, iban }) =>
      dataSource.manager.existsBy(Business, { id, iban }),
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await tx.insert(Payment, { key, iban });
    },
  });
  app.post("/api/v1/transaction", receivePayout);
  const server = app.listen(process.env["PORT"] ?? 3000);
  const close = gracefulClose(server, { endpoints: [receivePayout] });
  return async () => {
    await close(); // What was received is answered.
    stores.close();
    await dataSource.destroy();
  };
}
