import { execFile } from "node:child_process";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PrismaPg } from "@prisma/adapter-pg";
import type { start } from "../../dist/databases/prisma.js";

const here = path.dirname(fileURLToPath(import.meta.url));
const generate = path.resolve(here, "../../../../packages/stores/databases/test/prisma/generate.mjs");

/** A client of `schema.prisma`, generated for this run. */
export async function openPrisma(url: string) {
  const folder = await mkdtemp(path.join(here, ".generated-"));
  await copyFile(path.join(here, "schema.prisma"), path.join(folder, "schema.prisma"));
  await promisify(execFile)(process.execPath, [generate, folder]);
  const { PrismaClient } = (await import(path.join(folder, "client/client.ts"))) as {
    readonly PrismaClient: new (options: { adapter: PrismaPg }) => Parameters<typeof start>[1];
  };
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
  return {
    prisma,
    async end(): Promise<void> {
      await rm(folder, { recursive: true });
    },
  };
}
