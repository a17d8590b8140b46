// A page shows 80 columns. Wider code is cut, and its end is what a reader has to scroll for.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { expand, fileText } from "../../site/scripts/expand.mjs";
import { documents } from "../../site/scripts/source.mjs";
import { fencesOf } from "./shown-code.ts";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const columns = 78;
// Output, logs and settings wrap in place of this.
const code = ["ts", "js", "tsx", "mjs", "cjs", "sh", "sql", "prisma", "nginx", "yaml", "dockerfile"];

const pages = readdirSync(join(root, "site/pages"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".md"))
  .map((name) => `site/pages/${name}`);
// What a README shows is measured beside it, in test/readme.test.ts.
const ofReadmes = new Set(
  readdirSync(join(root, "examples/snippets/src"))
    .filter((name) => name.endsWith(".ts"))
    .map((name) => fileText(`examples/snippets/src/${name}`).trim()),
);
const options = { pictureOf: () => "", rewrite: (part: string) => part };

test.each([...pages, ...Object.keys(documents)])(`%s shows code of at most ${columns} columns`, (file) => {
  const lines = fencesOf(expand(read(file), options), code)
    .filter((fence) => !ofReadmes.has(fence.trim()))
    .flatMap((fence) => fence.split("\n"));
  expect(lines.filter((line) => line.length > columns)).toEqual([]);
});
