import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@jest/globals";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const packages = readdirSync(join(root, "packages"));
const read = (...path: string[]): string => readFileSync(join(root, ...path), "utf8");

const firstExample = (readme: string): string | undefined => /```ts\n([\s\S]*?)```/.exec(readme)?.[1];
const snippet = (name: string): string => read("examples", "snippets", "src", `${name}.ts`);

test("the README of the whole shows the compiled integration, to the letter", () => {
  expect(firstExample(read("README.md"))).toBe(snippet("integration"));
});

test("the README of the whole shows the whole minimal server, to the letter", () => {
  const server = read("examples", "minimal", "src", "server.ts");
  expect(read("README.md")).toContain(`\`\`\`ts\n${server}\`\`\``);
});

test("the page of the header Idempotency-Key shows its compiled example, to the letter", () => {
  expect(firstExample(read("docs", "idempotency-key.md"))).toBe(snippet("idempotency-key"));
});

describe.each(packages)("the README of %s", (name) => {
  const readme = read("packages", name, "README.md");

  test("shows the compiled example, to the letter", () => {
    expect(firstExample(readme)).toBe(snippet(name));
  });

  test("leads in its first lines to what compilers and jest need", () => {
    expect(readme.split("\n").slice(0, 6).join("\n")).toContain("](../../docs/using.md)");
  });

  // pnpm lets a project import what it has installed itself, and nothing else. Everybody here has Express.
  test("installs what its example imports", () => {
    const commands = [...readme.matchAll(/^ *npm install (.*)$/gm)].map(([, line = ""]) => line.split(/\s+/));
    const installed = new Set(commands.flat());
    const imported = [...snippet(name).matchAll(/ from "([^"]+)"/g)].map(([, module = ""]) => module);
    const missing = imported.filter((module) => !/^(node:|express$)/.test(module) && !installed.has(module));
    expect(missing).toEqual([]);
  });

  test("has at most 150 lines", () => {
    expect(readme.trimEnd().split("\n").length).toBeLessThanOrEqual(150);
  });

  test("stands in the table of packages", () => {
    expect(read("README.md")).toContain(`[${name}](packages/${name})`);
  });
});

const folders = [
  ".",
  "docs",
  "docs/decisions",
  "test/faults",
  "test/vectors",
  ...["packages", "examples"].flatMap((group) =>
    readdirSync(join(root, group)).map((name) => `${group}/${name}`),
  ),
];
const documents = folders.flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name)),
);

test.each(documents)("the relative links of %s lead somewhere", (file) => {
  const links = [...read(file).matchAll(/\]\(([^)#]+)[^)]*\)/g)].map(([, target = ""]) => target);
  const broken = links.filter(
    (target) => !/^https?:/.test(target) && !existsSync(join(root, dirname(file), target)),
  );
  expect(broken).toEqual([]);
});

test.each(packages)("the example of %s loads", async (name) => {
  await expect(import(`../examples/snippets/dist/${name}.js`)).resolves.toBeDefined();
});
