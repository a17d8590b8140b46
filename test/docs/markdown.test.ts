// docs/pages is what a reader of the repository has in place of the site: as stale as this test lets it become.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { packageFolder } from "../../scripts/workspace.mjs";
import { anchorsOf, githubAnchor, vitepressAnchor } from "../../site/scripts/anchors.mjs";
import { badges, numberBadges, readmesWithBadges } from "../../site/scripts/badges.mjs";
import {
  agentsFiles,
  causesOfCommand,
  codesOfCommand,
  markdownFiles,
  staleDrawings,
} from "../../site/scripts/markdown.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
// What codes say is compared where they are made to happen: codes-page.test.ts.
const withoutExamples = (text: string): string => text.replaceAll(/^```(?:json|text)\n[\s\S]*?^```$/gm, "");
const codes = "docs/pages/reference/codes.md";
const agents = agentsFiles();
const made = await markdownFiles({ happen: (code) => Promise.resolve({ code, text: "…" }) });

test("docs/pages has the pages of the site, and no other file", () => {
  const files = readdirSync(join(root, "docs/pages"), { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".md"),
  );
  const named = files.map((name) => `docs/pages/${name.replaceAll("\\", "/")}`);
  expect(new Set(named)).toEqual(new Set(made.keys()));
});

test.each([...made])("%s is what npm run docs:markdown writes", (file, text) => {
  const path = join(root, file);
  const committed = existsSync(path) ? readFileSync(path, "utf8") : "nothing";
  const compared = file === codes ? withoutExamples : (all: string) => all;
  expect(compared(committed)).toBe(compared(text));
});

test("countersign code has the texts of the page of codes", () => {
  const [file, text] = codesOfCommand();
  expect(readFileSync(join(root, file), "utf8")).toBe(text);
});

test("countersign doctor has the causes of its page", () => {
  const [file, text] = causesOfCommand();
  expect(readFileSync(join(root, file), "utf8")).toBe(text);
});

test.each(agents)("%s is the page for assistants, whose links lead out of the package", (file, text) => {
  expect(readFileSync(join(root, file), "utf8")).toBe(text);
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  expect(links.length).toBeGreaterThan(5);
  expect(links.filter((target) => !target.startsWith("https://"))).toEqual([]);
});

test.each(["countersign", "fastify", "fetch", "create-countersign"])(
  "the package %s has the page for assistants in its tarball",
  (name) => {
    const places = agents.map(([file]) => file);
    const folder = packageFolder(name);
    const { files } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as {
      files: readonly string[];
    };
    const packed = files.map((entry) => `${folder}/${entry}`);
    const inside = (file: string): boolean =>
      packed.some((entry) => file === entry || file.startsWith(`${entry}/`));
    expect(places.filter(inside)).toHaveLength(1);
  },
);

test.each(badges())("%s is what npm run docs:markdown draws, and the README shows it", (file, svg) => {
  expect(readFileSync(join(root, file), "utf8")).toBe(svg);
  expect(readFileSync(join(root, "README.md"), "utf8")).toContain(`](${file})`);
});

test.each([...numberBadges(), ...readmesWithBadges()])(
  "%s is what npm run docs:markdown writes",
  (file, text) => {
    const shown = readFileSync(join(root, file), "utf8");
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

test("no page has a fence that only the site fills", () => {
  const fences = [...made].flatMap(([file, text]) =>
    [...text.matchAll(/^ *```\w* *(?:file|run)=.*$|^ *```\w+\n\s*```$/gm)].map(
      ([fence]) => `${file}: ${fence}`,
    ),
  );
  expect(fences).toEqual([]);
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
