import path from "node:path";
import { fileURLToPath } from "node:url";
import { PrismaPg } from "@prisma/adapter-pg";
import { generatePrismaClient } from "@countersign/test-support/servers/prisma-client.ts";
import type { start } from "../../dist/databases/prisma.js";

const schema = fileURLToPath(new URL("schema.prisma", import.meta.url));

/** A client of `schema.prisma`, generated for this run. */
export async function openPrisma(url: string) {
  const { folder, remove } = await generatePrismaClient(schema);
  const { PrismaClient } = (await import(path.join(folder, "client/client.ts"))) as {
    readonly PrismaClient: new (options: { adapter: PrismaPg }) => Parameters<typeof start>[1];
  };
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
  return { prisma, end: remove };
}
