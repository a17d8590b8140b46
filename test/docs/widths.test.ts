// A page shows 80 columns. Wider code is cut, and its end is what a reader has to scroll for.
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { documents, pageFiles } from "../../site/scripts/source.mjs";
import { withManagers } from "../../site/scripts/page-text.mjs";
import { fencesOf, indentedBlocksOf } from "./shown-code.ts";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const columns = 78;
// What a command prints fits a terminal.
const terminal = 80;

// What a README shows is measured beside it, in test/readme.test.ts.
const shown = [...pageFiles(), ...Object.keys(documents)].map((file) => ({ file, text: read(file) }));

const linesOver = (blocks: readonly string[], limit: number): readonly string[] =>
  blocks.flatMap((block) => block.split("\n")).filter((line) => line.length > limit);

test.each(shown)(`$file shows code of at most ${columns} columns`, ({ text }) => {
  // A value in .env has one line.
  const code = fencesOf(text, (language) => language !== "text" && language !== "ini");
  expect(linesOver(code, columns)).toEqual([]);
  expect(
    linesOver(
      fencesOf(text, (language) => language === "text"),
      terminal,
    ),
  ).toEqual([]);
  expect(linesOver(indentedBlocksOf(text), columns)).toEqual([]);
});

test.each(shown)(
  "$file marks no code or command by its indentation alone, which has no colours",
  ({ text }) => {
    const begins =
      /^(?:(?:[A-Z_]+=\S+ )*(?:npm|npx|node|curl|cd|git|export|countersign)\s|(?:with|import) |.*[;{](?:\n|$))/;
    expect(indentedBlocksOf(text).filter((block) => begins.test(block))).toEqual([]);
  },
);

test("commands that install have a tab for each package manager, with its own way to give flags", () => {
  const create = withManagers("```sh\nnpm create countersign@latest it -- \\\n  --store postgres\n```");
  for (const line of [
    "npm create countersign@latest it -- \\",
    "pnpm create countersign@latest it \\",
    "yarn create countersign it \\",
  ])
    expect(create).toContain(`\n${line}\n`);
});
