// package.json has the two addresses of the project, of its pages and of its code: every other place repeats one of them.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { homepage, repository } from "../../site/scripts/source.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const listed = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" }).split("\0");
const files = listed.filter(
  (file) => /\.(?:md|ts|mjs|js|json|yml|html|svg)$/.test(file) && !file.endsWith("package-lock.json"),
);

const ours = (address: string): boolean =>
  [homepage, `${repository}.git`, repository].some((known) => address === known) ||
  [homepage, `${repository}/`, `${repository}#`].some((known) => address.startsWith(known));

const found = files
  .filter((file) => existsSync(join(root, file)))
  .flatMap((file) =>
    [
      ...readFileSync(join(root, file), "utf8").matchAll(
        /https:\/\/(?:github\.com\/[\w-]+\/countersign|[\w-]+\.github\.io)[\w./#*-]*/g,
      ),
    ].map(([address]) => ({ file, address })),
  );

test.each([
  "README.md",
  "packages/kernel/core/src/docs.ts",
  "packages/observe/observe/alerts.yml",
  "packages/tools/create-countersign/templates/common/README.md",
])("%s has an address of the project", (file) => {
  expect(found.map((one) => one.file)).toContain(file);
});

test("an address of code or pages is that of package.json, in every file", () => {
  expect(found.filter(({ address }) => !ours(address))).toEqual([]);
});
