import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { reportLeftOut } from "@countersign/test-support/servers/server-binaries.mjs";

/** The folder of a published test suite; undefined, and said so, when CONFORMANCE_VECTORS does not lead to one. */
export function suiteFolder(suite: string): string | undefined {
  const folder = process.env["CONFORMANCE_VECTORS"];
  if (folder !== undefined && folder !== "") return join(folder, suite);
  reportLeftOut(
    `CONFORMANCE_VECTORS is not set: the suite ${suite} did not run, only the few cases in test/conformance.`,
  );
  return undefined;
}

export function readJson(folder: string, file: string): unknown {
  return JSON.parse(readFileSync(join(folder, file), "utf8"));
}

export function jsonFiles(folder: string): string[] {
  return readdirSync(folder).filter((file) => file.endsWith(".json"));
}
