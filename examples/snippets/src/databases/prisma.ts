import { fromPrisma } from "@countersign/store-sql/prisma";
import { gracefulClose, payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import type { Express } from "express";
import type { PrismaClient } from "./generated/client.js";
import { service } from "./service.js";

// model Payment  { key String @id  iban String }
// model Business { id String  iban String  @@id([id, iban]) }

// At the start: process.once("SIGTERM", await start(express(), prisma));
export async function start(app: Express, prisma: PrismaClient) {
  const stores = createStores({ database: fromPrisma(prisma) });
  await stores.ready(); // Rejects until `countersign migrate` has run.
  const receivePayout = payoutEndpoint({
    ...service,
    stores,
    findBusiness: async ({ businessId: id, iban }) =>
      (await prisma.business.count({ where: { id, iban } })) === 1,
    async pay({ idempotencyKey: key, beneficiary }, { tx }) {
      await tx.payment.create({ data: { key, iban: beneficiary.iban } });
    },
  });
  app.post("/api/v1/transaction", receivePayout);
  const server = app.listen(process.env["PORT"] ?? 3000);
  const close = gracefulClose(server, { endpoints: [receivePayout] });
  return async () => {
    await close(); // What was received is answered.
    stores.close();
    await prisma.$disconnect();
  };
}
