// A page says from where a function is imported, when that is not the package's root.
import { expect, test } from "@jest/globals";
import { documentedParts, workspacePackages } from "../../scripts/workspace.mjs";
import { packagePage } from "./package-pages.ts";

interface EntryPoint {
  readonly name: string;
  readonly entry: string;
  readonly root: string | undefined;
}

/** An entry point that is used alone has a page of its own. */
function pageOf(path: string): string | undefined {
  const [, part = ""] = path.split("/");
  return documentedParts.has(part) && !workspacePackages.has(part) ? part : undefined;
}

const further = [...workspacePackages].flatMap(([name, { manifest }]): EntryPoint[] => {
  const exported = (manifest["exports"] ?? {}) as Readonly<Record<string, { types?: string } | string>>;
  const root = exported["."] === undefined ? undefined : manifest.name;
  return Object.entries(exported)
    .filter(([path, target]) => path !== "." && typeof target !== "string" && target.types !== undefined)
    .map(([path]) => ({ name: pageOf(path) ?? name, entry: manifest.name + path.slice(1), root }));
});

async function namesOf(entry: string): Promise<readonly string[]> {
  return Object.keys((await import(entry)) as object);
}

test("there are entry points beside roots", () => {
  expect(further.length).toBeGreaterThan(8);
});

test.each(further)("the page of $name names $entry where it tells of its functions", async (point) => {
  const ofRoot = new Set(point.root === undefined ? [] : await namesOf(point.root));
  const own = (await namesOf(point.entry)).filter((name) => !ofRoot.has(name));
  const page = packagePage(point.name);
  const told = own.filter((name) => new RegExp(`\`(?:new )?${name}\\b`).test(page));
  expect(told.length === 0 || page.includes(point.entry) ? [] : told).toEqual([]);
});
