import { fromPrisma } from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createPostgresStores } from "@countersign/store-postgres";
import type { PrismaClient } from "./generated/client.ts";
import { service } from "./service.ts";

// model Payment { key String @id  iban String }
export function payouts(prisma: PrismaClient) {
  const stores = createPostgresStores({ database: fromPrisma(prisma) });
  return payoutEndpoint({
    ...service,
    stores,
    async pay({ idempotencyKey: key, beneficiary }, { tx }) {
      await tx.payment.create({ data: { key, iban: beneficiary.iban } });
    },
  });
}

// Mount it: app.post("/api/v1/transaction", payouts(prisma));
