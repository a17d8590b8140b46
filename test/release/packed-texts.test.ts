// What a package has on npm beside what lies in its folder.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { pageOf } from "@countersign/core/internal";
import { expect, test } from "@jest/globals";
import { packedPages, packedReadme } from "../../scripts/packed-texts.mjs";
import { packageFolder, workspacePackages } from "../../scripts/workspace.mjs";
import { anchorsOf, githubAnchor } from "../../site/scripts/anchors.mjs";
import { repository } from "../../site/scripts/source.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const names = [...workspacePackages.keys()];
const [beforePage = "", afterPage = ""] = pageOf("*").split("*");

/** The file of an address of the repository, or of a page, from the root. */
function fileOf(address: string): string | undefined {
  const [place = ""] = address.split("#");
  if (place.startsWith(beforePage) && place.endsWith(afterPage))
    return `site/pages/${place.slice(beforePage.length, place.length - afterPage.length)}.md`;
  return new RegExp(`^${repository}/(?:blob|tree|raw)/main/(.+)$`).exec(place)?.[1];
}

test.each(names)("the README of %s leads from npm to files that are there", (name) => {
  const place = packageFolder(name);
  const packed = packedReadme(read(`${place}/README.md`), place);
  const targets = [...packed.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  expect(targets.filter((target) => !/^(?:https:|#)/.test(target))).toEqual([]);
  const files = targets.filter((target) => !target.includes("/actions/")).map((target) => fileOf(target));
  expect(files.length).toBeGreaterThan(5);
  expect(files.filter((file) => file === undefined || !existsSync(join(root, file)))).toEqual([]);
});

test.each(names)("the README of %s leads from npm to headings that are there", (name) => {
  const place = packageFolder(name);
  const packed = packedReadme(read(`${place}/README.md`), place);
  const places = [...packed.matchAll(/\]\((https:[^)\s#]+)#([^)\s]+)\)/g)];
  const lost = places.filter(([, address = "", anchor = ""]) => {
    const file = fileOf(address);
    return file === undefined || !anchorsOf(read(file), githubAnchor).includes(anchor);
  });
  expect(lost).toEqual([]);
});

test("a page has the address of log lines and errors, a picture its bytes, a folder its list", () => {
  const readme =
    "[p](../../../site/pages/guide/keys.md#forget-a-key) ![i](../../../docs/pictures/badge-node.svg) [f](../../../bench)\n\n`[c](d)`\n";
  expect(packedReadme(readme, "packages/kernel/core")).toBe(
    `[p](${pageOf("guide/keys#forget-a-key")}) ![i](${repository}/raw/main/docs/pictures/badge-node.svg) [f](${repository}/tree/main/bench)\n\n\`[c](d)\`\n`,
  );
});

test("the pages that packages read when they run are those that are packed, with the package that reads them", () => {
  const asked = names.flatMap((name) => {
    const folder = join(root, packageFolder(name), "src");
    return readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .flatMap((file) => [...readFileSync(join(folder, file), "utf8").matchAll(/pageText\("([^"]+)"\)/g)])
      .map(([, page]) => page);
  });
  expect(new Set(packedPages["cli"])).toEqual(new Set(asked));
  const { files } = JSON.parse(read(`${packageFolder("cli")}/package.json`)) as {
    files: readonly string[];
  };
  expect(files).toContain("pages");
});
