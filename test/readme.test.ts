import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@jest/globals";
import { memberFolders, packageFolder, workspacePackages } from "../scripts/workspace.mjs";
import { anchorsOf, githubAnchor } from "../site/scripts/anchors.mjs";
import { packagePage, packageReadme } from "./docs/package-pages.ts";
import { brokenSiteLinks, siteLinks } from "./docs/site-links.ts";
import { optionTables } from "./docs/written-options.ts";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const packages = [...workspacePackages.keys()];
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

// A repository's view cuts what is wider, on its first screen.
test("the code of the README of the whole has at most 78 columns", () => {
  const fences = [...read("README.md").matchAll(/^```\w+\n([\s\S]*?)^```$/gm)];
  expect(fences.length).toBeGreaterThan(3);
  expect(fences.flatMap(([, code = ""]) => code.split("\n").filter((line) => line.length > 78))).toEqual([]);
});

test("the README of the whole begins with the clone, and says that nothing is on npm yet", () => {
  const readme = read("README.md");
  const order = [
    "git clone ",
    "npm start",
    "npm test",
    "fail until the first release",
    "npm create countersign",
  ];
  const places = order.map((text) => readme.indexOf(text));
  expect(places).not.toContain(-1);
  expect(places.every((place, index) => place >= (places[index - 1] ?? 0))).toBe(true);
});

test("the commands of the README are scripts of the workspace", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const named = [...read("README.md").matchAll(/(?:^|`)npm (?:run )?([a-z:]+)/gm)].map(
    ([, name = ""]) => name,
  );
  const own = new Set(named.filter((name) => !["create", "install"].includes(name)));
  expect(own.size).toBeGreaterThan(10);
  expect([...own].filter((name) => scripts[name] === undefined)).toEqual([]);
});

test("the page of the header Idempotency-Key shows its compiled example, to the letter", () => {
  expect(firstExample(read("docs", "idempotency-key.md"))).toBe(snippet("idempotency-key"));
});

const installs = (text: string): ReadonlySet<string> =>
  new Set([...text.matchAll(/^ *npm install (.*)$/gm)].flatMap(([, line = ""]) => line.split(/\s+/)));

// pnpm lets a project import what it has installed itself, and nothing else. Everybody here has Express.
const notInstalled = (code: string, text: string): string[] =>
  [...code.matchAll(/ from "([^"]+)"/g)]
    .map(([, module = ""]) => module)
    .filter((module) => !/^(node:|express$)/.test(module) && !installs(text).has(packageOf(module)));

/** The package that a module is of: `@countersign/observe` for `@countersign/observe/log`. */
function packageOf(module: string): string {
  return module.split("/", module.startsWith("@") ? 2 : 1).join("/");
}

const writtenOptions = (page: string): readonly [option: string, byDefault: string | undefined][] =>
  optionTables(page).flatMap((table) => Object.entries(table));

describe.each(packages)("the README of %s", (name) => {
  const readme = packageReadme(name);

  test("shows the compiled example, to the letter", () => {
    expect(firstExample(readme)).toBe(snippet(name));
  });

  test("installs what its example imports", () => {
    expect(notInstalled(snippet(name), readme)).toEqual([]);
  });

  // What does not fit stands in the package's page, site/pages/reference/packages.
  test("has at most two screens, 80 lines", () => {
    expect(readme.trimEnd().split("\n").length).toBeLessThanOrEqual(80);
  });

  test("has promise, install, example, what matters and links, in this order", () => {
    const order = [/^# .*\n\n[A-Z`]/, /^ *npm (?:install|create) /m, /^```ts\n/m, /^\| /m, /^## More\n/m];
    const places = order.map((part) => readme.search(part));
    expect(places).not.toContain(-1);
    expect(places.every((place, index) => place >= (places[index - 1] ?? 0))).toBe(true);
  });

  // Of its own page, or, where that has no options of its own, of the pages that it leads to.
  test("has the defaults of the pages, which are compared with the code", () => {
    const linked = siteLinks(readme).flatMap(
      (link) => /^reference\/packages\/([a-z-]+)\.html/.exec(link)?.[1] ?? [],
    );
    const own = writtenOptions(packagePage(name));
    const told = own.length > 0 ? own : linked.flatMap((other) => writtenOptions(packagePage(other)));
    for (const option of writtenOptions(readme)) expect(told).toContainEqual(option);
  });

  test("leads to its page, to what compilers and jest need, and to pages that are there", () => {
    expect(siteLinks(readme).join(" ")).toContain(`reference/packages/${name}.html`);
    expect(siteLinks(readme)).toContain("guide/typescript.html");
    expect(brokenSiteLinks(readme)).toEqual([]);
  });

  test("stands in the table of packages", () => {
    expect(read("README.md")).toContain(`[${name}](${packageFolder(name)})`);
  });
});

test.each(packages)("the page of %s installs what its example imports", (name) => {
  const page = packagePage(name);
  const file = /^ *```ts file=(\S+)/m.exec(page)?.[1];
  expect(notInstalled(file === undefined ? snippet(name) : read(file), page)).toEqual([]);
});

const folders = [
  ".",
  "docs",
  "docs/decisions",
  "docs/pages",
  "docs/pages/concepts",
  "docs/pages/guide",
  "docs/pages/reference",
  "docs/pages/reference/packages",
  "test/faults",
  "test/vectors",
  ...memberFolders(),
];
const documents = folders.flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name)),
);

/** The file of a link, and the heading that it names. */
function isThere(from: string, link: string): boolean {
  const [place = "", anchor] = link.split("#");
  const file = place === "" ? from : join(dirname(from), place);
  if (!existsSync(join(root, file))) return false;
  return anchor === undefined || anchorsOf(read(file), githubAnchor).includes(anchor);
}

test.each(documents)("the relative links of %s lead somewhere", (file) => {
  const links = [...read(file).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  expect(links.filter((target) => !/^(https?|mailto):/.test(target) && !isThere(file, target))).toEqual([]);
});

test.each(packages)("the example of %s loads", async (name) => {
  await expect(import(`../examples/snippets/dist/${name}.js`)).resolves.toBeDefined();
});
