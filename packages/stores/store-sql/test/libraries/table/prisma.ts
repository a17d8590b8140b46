import path from "node:path";
import { Client } from "pg";
import { PrismaPg } from "@prisma/adapter-pg";
import { fromPrisma } from "@countersign/store-sql/prisma";
import { openTable, poolSize, servers, type TableRow, unusedTable } from "./row.ts";

// Twenty payments at once, on a busy machine too.
const maxWait = 30_000;

type PrismaTransactionOptions = NonNullable<Parameters<typeof fromPrisma>[1]>;

/** As much of a generated client's transaction as handlers here use; `test/prisma/types.test.ts` compiles with the generated types. */
export interface PrismaTx {
  $transaction<T>(work: (tx: PrismaTx) => Promise<T>, options?: object): Promise<T>;
  readonly payment: {
    create(args: { data: { id: string } }): PromiseLike<unknown>;
    updateMany(args: { data: { parent: null } }): PromiseLike<unknown>;
  };
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
  $executeRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
}

interface PrismaClient extends PrismaTx {
  $connect(): Promise<void>;
  $disconnect(): Promise<void>;
  $extends(extension: { readonly name: string }): PrismaClient;
}

export type PrismaClientClass = new (options: { adapter: PrismaPg }) => PrismaClient;

export async function loadPrismaClient(folder: string): Promise<PrismaClientClass> {
  const { PrismaClient } = await import(path.join(folder, "client/client.ts"));
  return PrismaClient;
}

interface PrismaSettings {
  readonly isExtended?: boolean;
  readonly options?: PrismaTransactionOptions;
}

/** `clientClass` is called when the client has been generated. */
export function prismaRow(
  clientClass: () => PrismaClientClass,
  settings: PrismaSettings,
): TableRow<PrismaTx> {
  return {
    name: `Prisma on postgresql${settings.isExtended ? ", extended" : ""}`,
    engine: "postgresql",
    lacks: ["script"],
    open: () => openPrisma(clientClass(), settings),
  };
}

export async function openPrisma(
  PrismaClass: PrismaClientClass,
  { isExtended = false, options = {} }: PrismaSettings,
) {
  const schema = unusedTable();
  const admin = new Client({ connectionString: servers.postgresql });
  await admin.connect();
  await admin.query(`CREATE SCHEMA ${schema}`);
  const adapter = new PrismaPg(
    { connectionString: servers.postgresql, max: poolSize, options: `-c search_path=${schema}` },
    { schema },
  );
  const plain = new PrismaClass({ adapter });
  const prisma = isExtended ? plain.$extends({ name: "nothing" }) : plain;
  return {
    ...(await openTable(fromPrisma(prisma, { maxWait, ...options }), "payments")),
    prisma,
    exec: (tx: PrismaTx, text: string) => tx.$executeRawUnsafe(text),
    insertByHandler: (tx: PrismaTx, id: string) => Promise.resolve(tx.payment.create({ data: { id } })),
    nest: (tx: PrismaTx, work: (inner: PrismaTx) => Promise<void>) => tx.$transaction(work),
    nonTransaction: prisma,
    async end() {
      await plain.$disconnect();
      await admin.query(`DROP SCHEMA ${schema} CASCADE`);
      await admin.end();
    },
  };
}
