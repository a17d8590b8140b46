import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@jest/globals";
import { format } from "oxfmt";
import type { Choices } from "../src/flags.ts";
import { projectFiles, type ProjectFiles } from "../src/project-files.ts";
import { packageFolder } from "../../../../scripts/workspace.mjs";
import { combinations, manifest, templates } from "./workbench.ts";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const versions = manifest.devDependencies;

function filesOf(choices: Choices): ProjectFiles {
  return projectFiles({ ...choices, name: "tried", templates, versions });
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
  const files = filesOf(choices);
  const inSrc = [...files].flatMap(([file, text]) => (file.startsWith("src/") ? [text] : [])).join("\n");

  test("has the same files as all", () => {
    const sources = [
      "src/amount",
      "src/checks",
      "src/database",
      "src/server",
      "src/settings",
      "scripts/dev",
      "scripts/keys",
      "scripts/play",
    ];
    const tests = ["test/fresh-database", "test/lending-service", "test/platform.test"];
    const expected = [...sources, ...tests].map((file) => `${file}.ts`);
    const others = [".env.example", ".gitignore", "AGENTS.md", "README.md", "package.json", "tsconfig.json"];
    expect([...files.keys()].toSorted()).toEqual([...expected, ...others].toSorted());
  });

  test("is formatted, and has its name filled in", async () => {
    for (const [file, text] of files) {
      expect(text).not.toMatch(/\{\{/);
      if (!/\.(?:ts|md|json)$/.test(file)) continue;
      expect((await format(file, text, { printWidth: 110 })).code).toBe(text);
    }
  });

  test("imports what it depends on, and of its own files those that are there", () => {
    const { dependencies, devDependencies } = manifestIn(files);
    for (const [file, text] of [...files].filter(([name]) => name.endsWith(".ts"))) {
      for (const [, module = ""] of text.matchAll(/ from "([^"]+)"/g)) {
        const [name = ""] = /^(?:@[^/]+\/)?[^/]+/.exec(module) ?? [];
        if (module.startsWith("."))
          expect([...files.keys()]).toContain(path.posix.join(path.posix.dirname(file), module));
        else if (file.startsWith("src/") && !module.startsWith("node:"))
          expect(dependencies).toHaveProperty([name]);
        else if (!module.startsWith("node:"))
          expect({ ...dependencies, ...devDependencies }).toHaveProperty([name]);
      }
    }
    for (const name of Object.keys(dependencies)) expect(inSrc).toMatch(new RegExp(` from "${name}["/]`));
  });

  test("depends on the releases of this workspace, each written in one place", () => {
    const { dependencies, devDependencies } = manifestIn(files);
    for (const [name, range] of Object.entries({ ...dependencies, ...devDependencies })) {
      const ours = /^(?:@countersign\/|countersign$)/.test(name);
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
    const drivers = { sqlite: "libsql", postgres: "pg", mariadb: "mysql2" };
    expect(Object.values(drivers).filter(has)).toEqual([drivers[choices.store]]);
  });

  test("tells in .env.example every setting that it reads", () => {
    const settings = [...(files.get("src/settings.ts") ?? "").matchAll(/read\("(\w+)"/g)];
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

  test("leads to the guide of its framework and its database, and to no other", () => {
    const pages = [...(files.get("README.md") ?? "").matchAll(/\/site\/pages\/guide\/([a-z-]+)\.md/g)];
    const own = { fastify: ["fastify"], express: [] }[choices.framework];
    const database = choices.store === "sqlite" ? "stores" : "databases";
    const expected = ["unauthorized", "payouts", "webhooks", "go-live", ...own, database];
    expect(pages.map(([, page]) => page)).toEqual(expected);
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
  for (const name of ["typescript", "express", "fastify", "pg", "libsql", "mysql2", "@types/node", "oxfmt"]) {
    expect([name, versions[name]]).toEqual([name, devDependencies[name]]);
  }
});

test("a version that a release has written as a range stays one", () => {
  const choices: Choices = { framework: "express", store: "sqlite" };
  const ranged = Object.fromEntries(Object.entries(versions).map(([name, version]) => [name, `^${version}`]));
  const of = (known: Readonly<Record<string, string>>): Manifest =>
    manifestIn(projectFiles({ ...choices, name: "tried", templates, versions: known }));
  expect(of(ranged)).toEqual(of(versions));
});

test("a dependency whose version is not known is refused", () => {
  const { pg: _, ...others } = versions;
  const options = {
    framework: "express",
    store: "postgres",
    name: "tried",
    templates,
    versions: others,
  } as const;
  expect(() => projectFiles(options)).toThrow(/the version of pg is not known/);
});

test.each(["postgres", "mariadb"] as const)("files on sqlite and %s differ where the store does", (store) => {
  const of = (kept: Choices["store"]): ProjectFiles => filesOf({ framework: "express", store: kept });
  const [one, other] = [of("sqlite"), of(store)];
  const differing = [...one].filter(([file, text]) => other.get(file) !== text).map(([file]) => file);
  const expected = [
    ".env.example",
    "README.md",
    "package.json",
    "src/database.ts",
    "src/settings.ts",
    "test/fresh-database.ts",
  ];
  expect(differing.toSorted()).toEqual(expected);
  const [own, others] = [one, other].map((files) => files.get("src/settings.ts") ?? "");
  const common = (text = ""): string => text.replaceAll(/^ {2}(?:database|stores).*\n/gm, "");
  expect(common(own)).toBe(common(others));
});
