import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { explainedAs } from "../../packages/tools/cli/test/explain/signed-with-mistake.ts";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (...path: string[]): string => readFileSync(join(root, ...path), "utf8");
const mistakes = explainedAs("mistakes.txt");
const samples = [...mistakes, ...explainedAs("other-mistakes.txt")].filter(
  ({ what }) => what !== "verifies" && !what.includes("+"),
);

test("the page of explanations has every identifier of the samples, each with a sentence of theirs", () => {
  const shown = [...read("site/pages/guide/explain.md").matchAll(/^- `([a-z0-9-]+)`: `(.*)`$/gm)];
  const said = new Set(samples.map(({ what, says }) => `${what} ${says}`));
  expect(shown.map(([, what, says]) => `${what} ${says}`).filter((each) => !said.has(each))).toEqual([]);
  expect(new Set(shown.map(([, what]) => what))).toEqual(new Set(samples.map(({ what }) => what)));
});

test("what is told of how many mistakes are named is what the table has", () => {
  const named = mistakes.filter(({ what }) => what !== "signature-unexplained").length;
  const sentence = `Of ${mistakes.length} seeded mistakes ${named} are named in the first sentence`;
  expect(read("site/pages/guide/explain.md").replaceAll(/\s+/g, " ")).toContain(sentence);
});
