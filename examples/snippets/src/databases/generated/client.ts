import type { fromPrisma } from "@countersign/store-sql/prisma";

type PrismaTransactionOptions = NonNullable<Parameters<typeof fromPrisma>[1]>;

/** As much of a generated client as prisma.ts uses. */
interface Transaction {
  readonly payment: {
    create(row: {
      data: { key: string; iban: string };
    }): PromiseLike<unknown>;
  };
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
}

export interface PrismaClient extends Transaction {
  readonly business: {
    count(query: {
      where: { id: string; iban: string };
    }): PromiseLike<number>;
  };
  $connect(): Promise<void>;
  $disconnect(): Promise<void>;
  $transaction(
    work: (tx: Transaction) => Promise<void>,
    options: PrismaTransactionOptions,
  ): Promise<void>;
}
