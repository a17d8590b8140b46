import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { packageFolder } from "../../scripts/workspace.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");

export function packageReadme(name: string): string {
  return readFileSync(readmeFile(name), "utf8");
}

/** The page in which all of a package is told; its README, where that says all there is to say. */
export function packagePage(name: string): string {
  const page = join(root, "site/pages/reference/packages", `${name}.md`);
  return readFileSync(existsSync(page) ? page : readmeFile(name), "utf8");
}

function readmeFile(name: string): string {
  return join(root, packageFolder(name), "README.md");
}
