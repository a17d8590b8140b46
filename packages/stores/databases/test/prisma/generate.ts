import { execFile } from "node:child_process";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const here = path.dirname(fileURLToPath(import.meta.url));

export interface GeneratedClient {
  readonly folder: string;
  remove(): Promise<void>;
}

/** Generates the client of `schema.prisma` into a folder of its own, from where it finds the packages. */
export async function generatePrismaClient(): Promise<GeneratedClient> {
  const folder = await mkdtemp(path.join(here, ".generated-"));
  await copyFile(path.join(here, "schema.prisma"), path.join(folder, "schema.prisma"));
  await promisify(execFile)(process.execPath, [path.join(here, "generate.mjs"), folder]);
  return { folder, remove: () => rm(folder, { recursive: true }) };
}
