// Before npm has the packages, a reader copies one line that `npm run pack` prints for the page.
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { installedBy, pageInstalls } from "../../scripts/page-installs.mjs";
import { workspacePackages } from "../../scripts/workspace.mjs";
import { pageFiles } from "../../site/scripts/source.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const manifests = new Map([...workspacePackages.values()].map(({ manifest }) => [manifest.name, manifest]));
const tarballs = Object.fromEntries([...manifests.keys()].map((name) => [name, `/packed/${name}.tgz`]));
const installs = pageInstalls(tarballs);
const lineOf = new Map(installs.flatMap(({ line, files }) => files.map((file) => [file, line] as const)));

const withOurs = ["README.md", ...pageFiles()].filter((file) =>
  installedBy(readFileSync(join(root, file), "utf8")).some((name) => manifests.has(name)),
);

test("each page has one line, pages with the same packages the same one", () => {
  expect(withOurs.length).toBeGreaterThan(40);
  expect(withOurs.filter((file) => !lineOf.has(file))).toEqual([]);
  expect(new Set(lineOf.values()).size).toBe(installs.length);
});

test.each(withOurs)(
  "the line of %s installs what the page does, what that needs of ours, and no more",
  (file) => {
    const words = new Set(lineOf.get(file)?.replace("npm install ", "").split(" "));
    const named = installedBy(readFileSync(join(root, file), "utf8"));
    const needed = new Set(named);
    for (const name of needed) {
      for (const more of Object.keys(Object(manifests.get(name)?.["dependencies"])))
        if (manifests.has(more)) needed.add(more);
    }
    expect(words).toEqual(new Set([...needed].map((name) => tarballs[name] ?? name)));
  },
);

test("reads commands over several lines, without flags and comments", () => {
  const text = "npm install express \\\n  pg\nnpm install -D @countersign/cli   # for migrate\nnpm install\n";
  expect(installedBy(text)).toEqual(["@countersign/cli", "express", "pg"]);
});
