import { execFile } from "node:child_process";
import { copyFile, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const generator = path.join(root, "packages/stores/store-sql/test/libraries/prisma/generate.mjs");

export interface GeneratedClient {
  /** The client is in its file client/client.ts. */
  readonly folder: string;
  remove(): Promise<void>;
}

/** Generates the Prisma client of `schemaFile` into a temporary folder, whose imports resolve to the packages of the checkout. */
export async function generatePrismaClient(schemaFile: string): Promise<GeneratedClient> {
  const folder = await mkdtemp(path.join(tmpdir(), "countersign-prisma-"));
  await writeFile(path.join(folder, "package.json"), '{ "type": "module" }\n');
  await symlink(path.join(root, "node_modules"), path.join(folder, "node_modules"), "junction");
  await copyFile(schemaFile, path.join(folder, "schema.prisma"));
  await promisify(execFile)(process.execPath, [generator, folder]);
  return { folder, remove: () => rm(folder, { recursive: true }) };
}
