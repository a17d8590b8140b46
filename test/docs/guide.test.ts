import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { withoutMarks } from "../../site/scripts/fill.mjs";
import { fileText } from "../../site/scripts/file-text.mjs";
import { stillSvg } from "../../site/scripts/still.mjs";
import { forVitePress } from "../../site/scripts/page-text.mjs";
import { table as guardOptions } from "../../packages/checks/idempotency-guard/dist/options.js";
import { workerOptions } from "../../packages/kernel/idempotency/dist/work/worker-options.js";
import { plain } from "./written-options.ts";

const run = promisify(execFile);
const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (...path: string[]): string => readFileSync(join(root, ...path), "utf8");
const pages = readdirSync(join(root, "site/pages"), { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".md"),
);

// The consumers' projects install the packages.
const installs = /^```sh\n(?:npm (?:install|create) .*\n)+```$/gm;

// What is copied out of a page was compiled or run: it comes from a file, or is what a command has printed.
test.each(pages)("the page %s has no code of its own", (name) => {
  const text = read("site/pages", name).replaceAll(installs, "");
  const fences = [...text.matchAll(/^ *```([^\n`]+)$/gm)].map(([, info = ""]) => info);
  // What happened when a code was provoked: codes-page.test.ts.
  const others = name === "reference/codes.md" ? ["text", "json"] : ["text"];
  expect(fences.filter((info) => !others.includes(info) && !/^\w+ (file|run)=/.test(info))).toEqual([]);
});

const fencesOf = (text: string): string[] => text.match(/^ *```[\s\S]*?^ *```$/gm) ?? [];

test.each(pages)("what the page %s shows in a fence reaches the reader as it is", (name) => {
  const text = withoutMarks(read("site/pages", name));
  const shown = forVitePress(text);
  expect(fencesOf(text).filter((fence) => !shown.includes(fence))).toEqual([]);
});

test("a comment in a fence is no heading, and its indented lines are no fence of their own", () => {
  const fence = "```nginx\n# a comment\n\n    listen 443;\n```";
  const page = `# Title\n\n${fence}\n\n# Second\n\n    npm test\n\nend\n`;
  const shown = `# Title\n\n${fence}\n\n## Second\n\n\`\`\`text\nnpm test\n\`\`\`\n\nend\n`;
  expect(forVitePress(page)).toBe(shown);
});

const leases = "examples/snippets/src/reference/lease-mode.ts";
const rules = "packages/stores/store-contract/STORE-RULES.md";
test.each<[page: string, language: string, file: string, region: string | undefined]>([
  ["docs/using.md", "js", "site/snippets/jest.config.js", undefined],
  ["site/pages/guide/fastify.md", "ts", leases, "fastify"],
  ["site/pages/guide/webhooks.md", "ts", leases, "webhooks"],
  ["packages/adapters/fetch/README.md", "ts", leases, "fetch"],
  [rules, "ts", "examples/snippets/src/reference/my-transactions.ts", undefined],
])("the code of %s in %s is that of %s", (page, language, file, region) => {
  const blocks = [
    ...read(page).matchAll(new RegExp(`\`\`\`${language}(?: file=.*)?\\n([\\s\\S]*?)\`\`\``, "g")),
  ];
  const codeOf = (text: string): string => text.replace(/^\/\/.*\n/, "").trimEnd();
  expect(blocks.map(([, code = ""]) => codeOf(code))).toContain(codeOf(fileText(file, { region })));
});

test("Express 4 is shown under the name that readers install", () => {
  const shown = fileText("examples/express4-commonjs/src/payouts.js");
  expect(shown).toContain('require("express")');
  expect(shown).not.toContain("express4");
});

test("the README leads to pages in the repository, which its reader has, and to none that has to be served", () => {
  const readme = read("README.md");
  expect(readme.match(/\]\(site\/pages\/[^)]+\.md/g)?.length).toBeGreaterThan(10);
  expect(readme).not.toContain("github.io");
});

test("the page of webhooks signs by hand what it says", async () => {
  const commands = fileText("site/snippets/webhook-signature.sh");
  const { stdout } = await run("bash", ["-e", "-c", commands]);
  expect(stdout.trim()).toBe(/# (\S+)\n$/.exec(commands)?.[1]);
});

test("the sizes that the page on several machines tells are those of the code", () => {
  const page = read("site/pages/guide/several-machines.md");
  const told = Object.fromEntries(
    [...page.matchAll(/^- `(leaseMs|maxWaiters)`, ([\d,]+)( seconds)?: /gm)].map(
      ([, name = "", number = "", seconds]) => [
        name,
        Number(number.replaceAll(",", "")) * (seconds === undefined ? 1 : 1000),
      ],
    ),
  );
  const inCode = (name: keyof typeof guardOptions): number =>
    Number(plain(guardOptions[name].byDefault).replaceAll(",", ""));
  expect(told).toEqual({ leaseMs: inCode("leaseMs"), maxWaiters: inCode("maxWaiters") });
});

test("the settings that the page on clusters gives are those of the clusters that were run", () => {
  const page = read("site/pages/guide/past-one-machine.md");
  const given = [...page.matchAll(/^ {4}(\w+ = .+)$/gm)].map(([, setting = ""]) => setting);
  expect(given.length).toBe(6);
  const programs = ["galera", "group", "postgres"]
    .map((name) => read(`test/clusters/${name}.mjs`))
    .join("\n");
  // As a statement, an option of the command, or a setting of a member.
  const plainly = (text: string): string => text.replaceAll(/[\s'"`=:,_-]+/g, " ").toLowerCase();
  const ran = plainly(programs).replaceAll("loose ", "");
  // PostgreSQL's default.
  const notGiven = given.filter((setting) => !ran.includes(plainly(setting).trim()));
  expect(notGiven).toEqual(["synchronous_commit = on"]);
});

test("the numbers that the pages on inbox and outcomes tell are those of the code", () => {
  const inCode = (name: keyof typeof workerOptions.table): number =>
    Number(workerOptions.table[name].byDefault);
  const [inbox, outcomes] = ["inbox", "outcomes"].map((name) =>
    read(`site/pages/guide/${name}.md`).replaceAll(/\s+/g, " "),
  );
  expect(inCode("concurrency")).toBe(4);
  expect(inbox).toContain("four at a time each (`concurrency`)");
  expect(outcomes).toContain("Four are sent at a time in each process (`concurrency`)");
  expect(inbox).toContain(`\`leaseMs\` (${inCode("leaseMs") / 1_000} seconds)`);
  const pauses = Array.from({ length: inCode("maxAttempts") - 1 }, (_, index) =>
    Math.min(inCode("backoffMs") * 2 ** index, inCode("maxBackoffMs")),
  );
  expect(Math.round(pauses.reduce((sum, pauseMs) => sum + pauseMs, 0) / 3_600_000)).toBe(8);
  expect(inbox).toContain(`\`maxAttempts\` (${inCode("maxAttempts")}, about eight hours)`);
});

test("the README's picture is of the recording", () => {
  expect(read("docs/pictures/demo.svg")).toBe(stillSvg(read("site/recordings/demo.cast")));
});

test("the recording shows the cases of the demo, all as expected", () => {
  const [, ...events] = read("site/recordings/demo.cast").trimEnd().split("\n");
  const output = events.map((line) => (JSON.parse(line) as [number, string, string])[2]).join("");
  const cases = output.split("\r\n").filter((line) => line.startsWith("ok  "));
  const names = cases.map((line) => line.split(/ {2,}/)[1] ?? "");
  const folder = join(root, "examples/demo/src");
  const sources = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
  expect(names.filter((name) => !sources.some((text) => text.includes(`"${name}"`)))).toEqual([]);
  // Record the demo again, by node site/scripts/record.mjs, after a change of its cases.
  const written = sources.flatMap((text) =>
    [...text.matchAll(/\bname: "([^"]+)"/g)].map(([, name = ""]) => name),
  );
  expect(written.filter((name) => !names.includes(name))).toEqual([]);
  expect(output).toContain(`\r\n${cases.length} of ${cases.length} as expected\r\n`);
});

// The test that the page shows, with jest in the place of vitest, as the page says.
const cache = join(root, "node_modules/.cache/countersign/guide");
mkdirSync(cache, { recursive: true });
const file = join(cache, "payout.mjs");
const shown = read("site/snippets/payout.test.mjs");
writeFileSync(
  file,
  shown
    .replace('from "vitest"', 'from "@jest/globals"')
    .replace('"./test-app.js"', JSON.stringify(join(root, "examples/snippets/dist/guide/test-app.js"))),
);
await import(file);
