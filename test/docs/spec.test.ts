import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { workspacePackages } from "../../scripts/workspace.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const folders = [...workspacePackages.values()].map(({ folder }) => join(root, folder, "src"));

const sources = folders.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => join(folder, path)),
);
const cited = sources.flatMap((path) =>
  [...readFileSync(path, "utf8").matchAll(/\(spec, "([^"]+)"/g)].map(([, section = ""]) => section),
);
const sections = [...readFileSync(join(root, "docs", "spec.md"), "utf8").matchAll(/^## (.+)$/gm)];

test("every section of the spec that code cites is one of docs/spec.md", () => {
  expect(new Set(cited).size).toBeGreaterThan(3);
  expect(sections.map(([, title]) => title)).toEqual(expect.arrayContaining([...new Set(cited)]));
});

test("the page on where to put what names files that are there", () => {
  const page = readFileSync(join(root, "docs", "architecture.md"), "utf8");
  const table = page.slice(page.indexOf("## Where to put what"), page.indexOf("# The key"));
  const named = [...table.matchAll(/`((?:test|examples|[a-z-]+\/src)\/[^`]+|[a-z-]+\/src)`/g)].map(
    ([, path = ""]) => path,
  );
  const groups = new Set([...workspacePackages.values()].map(({ folder }) => dirname(folder)));
  const found = (path: string): boolean =>
    ["", ...groups].some((group) => {
      const [parent, last] = [dirname(join(root, group, path)), path.split("/").at(-1) ?? ""];
      try {
        return readdirSync(parent).includes(last);
      } catch {
        return false;
      }
    });
  expect(named.length).toBeGreaterThan(8);
  expect(named.filter((path) => !found(path))).toEqual([]);
});
