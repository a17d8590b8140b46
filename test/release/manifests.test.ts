import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@jest/globals";
import { packageFolder, workspacePackages } from "../../scripts/workspace.mjs";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly description?: string;
  readonly license?: string;
  readonly keywords?: readonly string[];
  readonly homepage?: string;
  readonly bugs?: { readonly url: string };
  readonly repository?: { readonly type: string; readonly url: string; readonly directory?: string };
  readonly publishConfig?: object;
  readonly engines?: { readonly node: string };
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (...path: readonly string[]): string => readFileSync(join(root, ...path), "utf8");
const manifestIn = (...path: readonly string[]): Manifest =>
  JSON.parse(read(...path, "package.json")) as Manifest;
const { repository, engines } = manifestIn();
const { version } = JSON.parse(read("lerna.json")) as { version: string };
const published = [...workspacePackages.keys()].filter(
  (name) => workspacePackages.get(name)?.manifest.private !== true,
);

describe.each(published)("the package %s", (name) => {
  const manifest = manifestIn(packageFolder(name));
  const page = (repository?.url ?? "").replace(/^git\+/, "").replace(/\.git$/, "");

  // Provenance names the repository that the workflow ran in: the registry refuses a tarball that names another one.
  test("names the repository that its provenance will state, and its folder there", () => {
    expect(manifest.repository).toEqual({ ...repository, directory: packageFolder(name) });
    expect(manifest.publishConfig).toEqual({ access: "public", provenance: true });
  });

  test("leads to its page and to where faults are reported", () => {
    expect(manifest.homepage).toBe(`${page}/tree/main/${packageFolder(name)}#readme`);
    expect(manifest.bugs).toEqual({ url: `${page}/issues` });
  });

  test("can be found by several words, each named once", () => {
    const { keywords = [] } = manifest;
    expect(keywords.length).toBeGreaterThanOrEqual(4);
    expect(new Set(keywords).size).toBe(keywords.length);
    expect(manifest.description).toMatch(/^.{30,130}$/);
  });

  test("has the licence of the whole, the version of the whole and its Node", () => {
    expect(read(packageFolder(name), "LICENSE")).toBe(read("LICENSE"));
    expect(manifest).toMatchObject({ license: "MIT", version, engines });
  });
});

test("the table of supported versions names the minor version of this release", () => {
  const minor = version.split(".").slice(0, 2).join(".");
  expect(read("SECURITY.md")).toMatch(new RegExp(`^\\| ${minor}\\.x +\\| yes`, "m"));
});

test("every package has a budget for its size, and there is no other", () => {
  const budgets = JSON.parse(read("test/release/size-budgets.json")) as { packages: Record<string, number> };
  const names = published.map((name) => manifestIn(packageFolder(name)).name);
  expect(new Set(Object.keys(budgets.packages))).toEqual(new Set(names));
});
