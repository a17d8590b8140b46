import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { format } from "oxfmt";
import type { Choices } from "../src/choices.ts";
import { chosenLines } from "../src/pieces.ts";
import { projectFiles, type ProjectFiles } from "../src/project-files.ts";
import { packageFolder } from "../../../../scripts/workspace.mjs";
import { combinations, manifest, workbench, type Workbench } from "./workbench.ts";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const versions = manifest.devDependencies;

let bench: Workbench;

beforeAll(() => {
  bench = workbench();
});
afterAll(() => bench.remove());

function filesOf(choices: Choices): ProjectFiles {
  return projectFiles({ ...choices, name: "tried", templates: bench.templates, versions });
}

interface Manifest {
  readonly version: string;
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

function manifestIn(files: ProjectFiles): Manifest {
  return JSON.parse(files.get("package.json") ?? "") as Manifest;
}

function read(...names: string[]): Manifest {
  return JSON.parse(readFileSync(path.join(root, ...names, "package.json"), "utf8")) as Manifest;
}

const rows = combinations.map((choices) => [Object.values(choices).join(" "), choices] as const);

describe.each(rows)("a project of %s", (_name, choices) => {
  const extension = choices.language;
  let files: ProjectFiles;
  let code: string;

  beforeAll(() => {
    files = filesOf(choices);
    code = [...files].flatMap(([file, text]) => (/\.[jt]s$/.test(file) ? [text] : [])).join("\n");
  });

  test("has the same files as all, in its language", () => {
    const sources = [
      "src/checks",
      "src/database",
      "src/server",
      "src/settings",
      "scripts/keys",
      "scripts/play",
    ];
    const tests = ["test/lending-service", "test/platform.test"];
    const expected = [...sources, ...tests].map((file) => `${file}.${extension}`);
    const others = [".env.example", ".gitignore", "README.md", "package.json"];
    if (extension === "ts") others.push("tsconfig.json");
    expect([...files.keys()].toSorted()).toEqual([...expected, ...others].toSorted());
  });

  test("is formatted, and shows nothing of how it was made", async () => {
    for (const [file, text] of files) {
      expect(text).not.toMatch(/#if|#end|\/\/:|\{\{/);
      if (extension === "js") expect(text).not.toMatch(/\b\w+\.ts\b/);
      if (!/\.(?:[jt]s|md|json)$/.test(file)) continue;
      expect((await format(file, text, { printWidth: 110 })).code).toBe(text);
    }
  });

  test("imports what it depends on, and of its own files those that are there", () => {
    const { dependencies, devDependencies } = manifestIn(files);
    for (const [file, text] of files) {
      for (const [, module = ""] of text.matchAll(/ from "([^"]+)"/g)) {
        if (module.startsWith("."))
          expect([...files.keys()]).toContain(path.posix.join(path.posix.dirname(file), module));
        else if (file.startsWith("src/") && !module.startsWith("node:"))
          expect(dependencies).toHaveProperty([module]);
        else if (!module.startsWith("node:"))
          expect({ ...dependencies, ...devDependencies }).toHaveProperty([module]);
      }
    }
    for (const name of Object.keys(dependencies)) expect(code).toContain(` from "${name}"`);
  });

  test("depends on the releases of this workspace, each written in one place", () => {
    const { dependencies, devDependencies } = manifestIn(files);
    for (const [name, range] of Object.entries({ ...dependencies, ...devDependencies })) {
      const ours = name.startsWith("@countersign/");
      const version = ours ? read(packageFolder(name.replace("@countersign/", ""))).version : versions[name];
      expect([name, range]).toEqual([name, `^${version}`]);
    }
  });

  test("has no store or framework but its own", () => {
    const names = Object.keys(manifestIn(files).dependencies);
    const has = (name: string): boolean => names.includes(name);
    expect([has("express"), has("fastify")]).toEqual([
      choices.framework === "express",
      choices.framework === "fastify",
    ]);
    expect([has("libsql"), has("pg"), has("redis")]).toEqual([
      choices.store === "sqlite",
      choices.store !== "sqlite",
      choices.store === "redis",
    ]);
  });

  test("tells in .env.example every setting that it reads", () => {
    const settings = [...(files.get(`src/settings.${extension}`) ?? "").matchAll(/read\("(\w+)"/g)];
    const told = [...(files.get(".env.example") ?? "").matchAll(/^([A-Z_]+)=/gm)];
    expect(told.map(([, name = ""]) => name).toSorted()).toEqual(
      settings.map(([, name = ""]) => name).toSorted(),
    );
  });

  test("holds no secret and no key", () => {
    const text = [...files.values()].join("\n");
    expect(text).not.toMatch(/-----BEGIN [A-Z ]+-----\n|[A-Za-z0-9+/]{43}=|\b[0-9a-f]{32,}\b/);
    expect(files.get(".env.example")).toMatch(/^PUBLIC_KEY=$/m);
    expect(files.get(".gitignore")).toMatch(/^\.env$[^]*^keys\/$/m);
  });

  test("has a README of two screens, with its own commands", () => {
    const readme = files.get("README.md") ?? "";
    expect(readme.split("\n").length).toBeLessThanOrEqual(80);
    const { scripts } = manifestIn(files);
    for (const [, script = ""] of readme.matchAll(/npm (?:run )?(test|start|build|keys|dev|play)\b/g)) {
      expect(scripts).toHaveProperty([script]);
    }
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(["start", "test", "dev"]));
  });
});

test("tools have the versions that the workspace builds with", () => {
  const { devDependencies } = read();
  for (const name of ["typescript", "express", "fastify", "pg", "redis", "libsql", "@types/node", "oxfmt"]) {
    expect([name, versions[name]]).toEqual([name, devDependencies[name]]);
  }
});

test("JavaScript keeps every comment of the TypeScript", () => {
  const comments = (files: ProjectFiles): string[] =>
    [...files]
      .filter(([file]) => /\.[jt]s$/.test(file))
      .flatMap(([, text]) => [...text.matchAll(/(?:^|\s)(?:\/\/ |\/\*\* )[^\n]+/g)])
      .map(([comment]) => comment.trim().replaceAll(/\.ts\b/g, ".js"));
  const [inTypeScript, inJavaScript] = (["ts", "js"] as const).map((language) =>
    comments(filesOf({ framework: "express", store: "redis", language })),
  );
  expect(inTypeScript?.length).toBeGreaterThan(20);
  expect(inJavaScript).toEqual(inTypeScript);
});

test("a version that a release has written as a range stays one", () => {
  const choices: Choices = { framework: "express", store: "sqlite", language: "js" };
  const ranged = Object.fromEntries(Object.entries(versions).map(([name, version]) => [name, `^${version}`]));
  const of = (known: Readonly<Record<string, string>>): Manifest =>
    manifestIn(projectFiles({ ...choices, name: "tried", templates: bench.templates, versions: known }));
  expect(of(ranged)).toEqual(of(versions));
});

test("a template that imports what no version is known of is refused", () => {
  const { pg: _, ...others } = versions;
  const choices: Choices = { framework: "express", store: "postgres", language: "js" };
  const options = { ...choices, name: "tried", templates: bench.templates, versions: others };
  expect(() => projectFiles(options)).toThrow(/imports pg, whose version is not known/);
});

test("the templates are those of the package, in both languages", () => {
  const inLanguage = (language: string): string[] =>
    readdirSync(path.join(bench.templates, language), { recursive: true, encoding: "utf8" }).toSorted();
  const withoutTypes = inLanguage("ts").filter((file) => path.basename(file) !== "tsconfig.json");
  expect(inLanguage("js")).toEqual(withoutTypes.map((file) => file.replace(/\.ts$/, ".js")).toSorted());
});

describe("chosenLines", () => {
  const choices: Choices = { framework: "express", store: "redis", language: "js" };

  test.each([
    ["a block that is chosen", "a\n// #if redis\nb\n// #end\nc", "a\nb\nc"],
    ["a block that is not", "a\n// #if sqlite\nb\n// #end\nc", "a\nc"],
    ["a block of several", "# #if postgres, redis\nb\n# #end\n", "b\n"],
    ["a block in markdown", "a\n\n<!-- #if ts -->\n\nb\n\n<!-- #end -->\n\nc\n", "a\n\nc\n"],
    ["an indented block", "  // #if js\n  b\n  // #end\n", "  b\n"],
    ["an alternative", "// #if redis\n  //: nonces: b,\n// #end\n", "  nonces: b,\n"],
    ["what only looks like one", "// a #if redis\n#end of it\n", "// a #if redis\n#end of it\n"],
  ])("keeps of %s what is for the choices", (_name, template, expected) => {
    expect(chosenLines(template, choices)).toBe(expected);
  });

  test.each([
    ["a block in a block", "// #if js\n// #if redis\n// #end\n"],
    ["an end without a block", "a\n// #end\n"],
    ["a block without an end", "// #if js\na\n"],
  ])("refuses %s", (_name, template) => {
    expect(() => chosenLines(template, choices)).toThrow(/^a template has /);
  });
});
