import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { documentedParts, memberFolders, workspacePackages } from "../scripts/workspace.mjs";
import { anchorsOf, githubAnchor } from "../site/scripts/anchors.mjs";
import { fileText } from "../site/scripts/file-text.mjs";
import { published, repository } from "../site/scripts/source.mjs";
import { packagePage, packageReadme } from "./docs/package-pages.ts";
import { optionTables } from "./docs/written-options.ts";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const packages = [...workspacePackages.keys()];
const read = (...path: string[]): string => readFileSync(join(root, ...path), "utf8");

const fences = /^ *```[\s\S]*?^ *```$/gm;
const linesOf = (text: string): readonly string[] => text.trimEnd().split("\n");
const linksOf = (text: string): readonly string[] =>
  [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
const firstExample = (readme: string): string | undefined => /```ts\n([\s\S]*?)```/.exec(readme)?.[1];
const snippet = (name: string): string => fileText(`examples/snippets/src/${name}.ts`);

test("the README of the whole shows the compiled integration, to the letter", () => {
  expect(firstExample(read("README.md"))).toBe(snippet("integration"));
});

test("the README of the whole shows the middlewares as the example mounts them, to the letter", () => {
  const mounted = fileText("examples/middlewares/src/routes.ts", { region: "mount" });
  expect(read("README.md")).toContain(`\`\`\`ts\n${mounted.trimEnd()}\n\`\`\`\n`);
});

test("the README of the whole lists the seven middlewares first", () => {
  const listed = [...read("README.md").matchAll(/^\| \[[^\]]+\]\((packages\/[a-z-/]+)\)/gm)];
  const checks = memberFolders().filter((folder) => folder.startsWith("packages/checks/"));
  expect(checks).toHaveLength(7);
  expect(new Set(listed.slice(0, 7).map(([, folder]) => folder))).toEqual(new Set(checks));
});

test("the README of the whole begins with the clone, then comes what needs npm", () => {
  const readme = read("README.md");
  const order = ["git clone ", "npm start", "npm test", "npm install countersign", "npm create countersign"];
  const places = order.map((text) => readme.indexOf(text));
  expect(places).not.toContain(-1);
  expect(places.every((place, index) => place >= (places[index - 1] ?? 0))).toBe(true);
});

test("the README of the whole has what pages say before the first release, and not after it", () => {
  const words = (text: string): string => text.replaceAll(/\s+/g, " ").trim();
  const said = words(read("README.md")).includes(words(read("site", "before-release.md")));
  expect(said).toBe(!published);
});

test("the README of the whole installs what its code imports", () => {
  expect(notInstalled(snippet("integration"), read("README.md"))).toEqual([]);
});

test("the commands of README and CONTRIBUTING are scripts of the workspace", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const text = read("README.md") + read("CONTRIBUTING.md");
  const named = [...text.matchAll(/(?:^|`)npm (?:run )?([a-z:]+)/gm)].map(([, name = ""]) => name);
  const own = new Set(named.filter((name) => !["ci", "create", "install"].includes(name)));
  expect(own.size).toBeGreaterThan(10);
  expect([...own].filter((name) => scripts[name] === undefined)).toEqual([]);
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
  test("has at most 60 lines beside its code, and 100 with it", () => {
    expect(linesOf(readme.replaceAll(fences, "")).length).toBeLessThanOrEqual(60);
    expect(linesOf(readme).length).toBeLessThanOrEqual(100);
  });

  test("has promise, install, example, what matters and links, in this order", () => {
    const order = [
      /^# .*\n\n\[!\[.*\n\n[A-Z`]/,
      /^ *npm (?:install|create) /m,
      /^```ts\n/m,
      /^\| /m,
      /^## More\n/m,
    ];
    const places = order.map((part) => readme.search(part));
    expect(places).not.toContain(-1);
    expect(places.every((place, index) => place >= (places[index - 1] ?? 0))).toBe(true);
  });

  // Of its own page, or, where that has no options of its own, of the pages that it leads to.
  test("has the defaults of the pages, which are compared with the code", () => {
    const linked = linksOf(readme).flatMap(
      (link) =>
        /(?:reference\/packages|packages\/[a-z]+)\/([a-z-]+)(?:\.md|\/README\.md)/.exec(link)?.[1] ?? [],
    );
    const own = writtenOptions(packagePage(name));
    const shared = name.startsWith("store-") ? writtenOptions(read("site/pages/reference/stores.md")) : [];
    const told =
      own.length > 0 ? [...own, ...shared] : linked.flatMap((other) => writtenOptions(packagePage(other)));
    for (const option of writtenOptions(readme)) expect(told).toContainEqual(option);
  });

  test("leads to its page, where it has one, and to what compilers and jest need", () => {
    const page = `site/pages/reference/packages/${name}.md`;
    if (existsSync(join(root, page))) expect(linksOf(readme).join(" ")).toContain(`../../../${page}`);
    expect(linksOf(readme)).toContain("../../../docs/using.md");
  });

  test("stands in the list of packages", () => {
    expect(read("site/pages/reference/packages.md")).toMatch(new RegExp(`^- \\[${name}\\]\\(`, "m"));
  });
});

test.each([...documentedParts.keys()])("the page of %s installs what its example imports", (name) => {
  const page = packagePage(name);
  const file = /^ *```ts file=(\S+)/m.exec(page)?.[1];
  expect(notInstalled(file === undefined ? snippet(name) : read(file), page)).toEqual([]);
});

const folders = [
  ".",
  "docs",
  "docs/decisions",
  "site/pages",
  "site/pages/concepts",
  "site/pages/guide",
  "site/pages/reference",
  "site/pages/reference/packages",
  "site/pages/guide/databases",
  "test/faults",
  "test/fuzz",
  "test/mutants",
  "test/vectors",
  ...memberFolders(),
];
const known = new Set(["127.0.0.1:8080"]);
// The one state that only the repository's host knows.
const workflow = `${repository}/actions/workflows/ci.yml`;
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
  const links = linksOf(read(file));
  expect(links.filter((target) => !/^(https?|mailto):/.test(target) && !isThere(file, target))).toEqual([]);
});

const readmes = [...documents, "packages/tools/create-countersign/templates/common/README.md"].filter(
  (file) => file.endsWith("README.md") && !file.startsWith("site/pages"),
);

// A link to our own pages by an address breaks when the address changes, or before it is there. A created project has no other way.
test.each(readmes.filter((file) => !file.includes("/templates/")))(
  "the other links of %s lead to known places",
  (file) => {
    const links = linksOf(read(file)).filter((link) => ![workflow, `${workflow}/badge.svg`].includes(link));
    const hosts = links.flatMap((link) => /^https?:\/\/([^/]+)/.exec(link)?.[1] ?? []);
    expect(hosts.filter((host) => !known.has(host))).toEqual([]);
  },
);

// A repository's view and a registry's cut what is wider.
test.each(readmes)("the code of %s has at most 78 columns", (file) => {
  const code = [...read(file).matchAll(/^ *```[\s\S]*?^ *```$|^ {4}.*$/gm)].flatMap(([text]) =>
    linesOf(text),
  );
  expect(code.filter((line) => line.length > 78)).toEqual([]);
});

// In a process of its own, which ends the timers of their stores.
test("the example of each package loads", async () => {
  const modules = packages.map((name) => join(root, "examples", "snippets", "dist", `${name}.js`));
  const load = `for (const module of ${JSON.stringify(modules)}) await import(module); process.exit();`;
  const loaded = promisify(execFile)(process.execPath, ["--input-type=module", "--eval", load]);
  await expect(loaded).resolves.toMatchObject({ stderr: "" });
});
