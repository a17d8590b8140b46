import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { explainedAs } from "../../packages/tools/explain/test/signed-with-mistake.ts";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (...path: string[]): string => readFileSync(join(root, ...path), "utf8");
const mistakes = explainedAs("mistakes.txt");
const samples = [...mistakes, ...explainedAs("other-mistakes.txt")].filter(
  ({ what }) => what !== "verifies" && !what.includes("+"),
);

test("the page of explanations has every identifier of the samples, and no sentence but theirs", () => {
  const page = read("docs/explain.md");
  const groups = page.slice(page.indexOf("### Signatures"));
  const shown = [...groups.matchAll(/^`([a-z0-9-]+)`: `(.*)`$/gm)].map(([, what, says]) => `${what} ${says}`);
  const said = new Set(samples.map(({ what, says }) => `${what} ${says}`));
  expect(shown.length).toBeGreaterThan(0);
  expect(shown.filter((each) => !said.has(each))).toEqual([]);
  const listed = [...groups.matchAll(/`([a-z0-9-]+)`/g)].map(([, what]) => what);
  expect(new Set(listed)).toEqual(new Set(samples.map(({ what }) => what)));
});

test("what is told of how many mistakes are named is what the table has", () => {
  const named = mistakes.filter(({ what }) => what !== "signature-unexplained").length;
  const sentence = `Of ${mistakes.length} seeded mistakes ${named} are named in the first sentence`;
  for (const page of [read("site/pages/reference/packages/explain.md"), read("docs/explain.md")]) {
    expect(page.replaceAll(/\s+/g, " ")).toContain(sentence);
  }
});
