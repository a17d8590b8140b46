// A page is read where it lies, in site/pages: what it repeats of elsewhere is as stale as this test lets it become.
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { anchorsOf, githubAnchor, vitepressAnchor } from "../../site/scripts/anchors.mjs";
import { badges, numberBadges, readmesWithBadges } from "../../site/scripts/badges.mjs";
import { staleDrawings } from "../../site/scripts/drawings.mjs";
import { filled } from "../../site/scripts/fill.mjs";
import { pageFiles } from "../../site/scripts/source.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");

// What codes say is compared where they are made to happen: codes-page.test.ts.
test.each(pageFiles())("what %s repeats is as it is where it comes from", (file) => {
  expect(read(file)).toBe(filled(file, read(file)));
});

test.each<[what: string, page: string, changed: string]>([
  [
    "code",
    "```ts file=examples/snippets/src/payout.ts\nold\n```\n",
    "```ts file=examples/snippets/src/payout.ts\nimport ",
  ],
  ["a table of options", "<!-- options: rawBody -->\n\nold\n\n<!-- end of options -->\n", "\n| `limit` | "],
  ["codes", "<!-- codes: raw-body -->\n\nold\n\n<!-- end of codes -->\n", "\n- 413: "],
  ["the output of a command", '```text run="countersign code in-flight"\nold\n```\n', "\nin-flight "],
  ["a finding", "<!-- findings -->\n\n### app-failed\n\nold\n\nWhy.\n", "\nError. "],
])("%s that a page has in an old form is written again", (_what, page, changed) => {
  const text = filled("site/pages/reference/packages/raw-body.md", page);
  expect(text).toContain(changed);
  expect(text).not.toContain("old\n");
  expect(filled("site/pages/reference/packages/raw-body.md", text)).toBe(text);
});

test("a mark without its end is refused", () => {
  expect(() => filled("site/pages/x.md", "<!-- codes: raw-body -->\n\ntext\n")).toThrow(/a mark has no end/);
});

test("an option's meaning in the mark counts more than its doc comment", () => {
  const own = "<!-- options: rawBody\n- `limit`: At most this much.\n-->\n\n<!-- end of options -->\n";
  expect(filled("site/pages/x.md", own)).toMatch(/^\| `limit` \| .* \| At most this much\. \|$/m);
});

test.each(badges())("%s is what npm run docs:update draws, and the README shows it", (file, svg) => {
  expect(read(file)).toBe(svg);
  expect(read("README.md")).toContain(`](${file})`);
});

test.each([...numberBadges(), ...readmesWithBadges()])(
  "%s is what npm run docs:update writes",
  (file, text) => {
    const shown = read(file);
    expect(shown).toBe(text);
    if (file.endsWith(".md")) expect(shown).toMatch(/^# .*\n\n\[!\[CI\]/);
  },
);

test("the badges have the facts of today", () => {
  const shown = badges().map(([, svg]) => /aria-label="([^"]+)"/.exec(svg)?.[1]);
  expect(shown).toEqual([
    expect.stringMatching(/^Node: ≥ \d+\.\d+$/),
    "licence: MIT",
    expect.stringMatching(/^dependencies of countersign: \d$/),
    expect.stringMatching(/^size of countersign installed: ≤ [\d.]+ MB$/),
  ]);
});

test("no page shows an empty fence", () => {
  const empty = pageFiles().filter((file) => /^( *)```\w+[^\n]*\n\s*\1```$/m.test(read(file)));
  expect(empty).toEqual([]);
});

test("the drawings are those of their sources", () => {
  expect(staleDrawings()).toEqual([]);
});

test.each<[title: string, vitepress: string, github: string]>([
  ["4. A payout", "_4-a-payout", "4-a-payout"],
  ["What happens when …", "what-happens-when", "what-happens-when-"],
  ["Options of `createApp`", "options-of-createapp", "options-of-createapp"],
  ["A, B & C", "a-b-c", "a-b--c"],
])("the anchors of %j", (title, vitepress, github) => {
  const text = `## ${title}\n\n## ${title}\n`;
  expect(anchorsOf(text, vitepressAnchor)).toEqual([vitepress, `${vitepress}-1`]);
  expect(anchorsOf(text, githubAnchor)).toEqual([github, `${github}-1`]);
});
