import {
  fromPrisma,
  type PrismaTransactionOptions,
} from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createPostgresStores } from "@countersign/store-postgres";
import { service } from "./service.ts";

/**
 * As much of your generated client as this file uses; import yours instead.
 */
interface Tx {
  readonly payment: {
    create(row: {
      data: { key: string; iban: string };
    }): PromiseLike<unknown>;
  };
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
}
interface PrismaClient extends Tx {
  $connect(): Promise<void>;
  $transaction(
    work: (tx: Tx) => Promise<void>,
    options: PrismaTransactionOptions,
  ): Promise<void>;
}

// #region payouts
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
// #endregion payouts
