import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { Choices } from "./flags.ts";

/** Contents by path, with slashes, relative to the folder of the project. */
export type ProjectFiles = ReadonlyMap<string, string>;

export interface ProjectOptions extends Choices {
  readonly name: string;
  readonly templates: string;
  /** Of what the templates use, by package. */
  readonly versions: Readonly<Record<string, string>>;
}

/** Makes a project's files in memory: copies of three folders, with the project's name and its lines in them. */
export function projectFiles(options: ProjectOptions): ProjectFiles {
  const { name, framework, store, templates } = options;
  const files = new Map<string, string>();
  for (const part of ["common", framework, store]) {
    const folder = path.join(templates, part);
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const file = path.join(entry.parentPath, entry.name);
      const text = ownLines(readFileSync(file, "utf8"), [framework, store]);
      files.set(projectPath(path.relative(folder, file)), text.replaceAll("{{name}}", name));
    }
  }
  files.set("package.json", `${JSON.stringify(manifestOf(options), undefined, 2)}\n`);
  return files;
}

// A line that ends with {{fastify}} is for projects on Fastify alone.
function ownLines(text: string, chosen: readonly string[]): string {
  return text.replaceAll(/^(.*) \{\{(?!name\})(\w+)\}\}\n/gm, (_all, line: string, choice: string) =>
    chosen.includes(choice) ? `${line}\n` : "",
  );
}

// npm leaves .gitignore out of a package: hidden files begin with _ there.
function projectPath(file: string): string {
  return file.split(path.sep).join("/").replace(/^_/, ".");
}

const common = ["@countersign/devtools", "@types/node", "tsx", "typescript"];
const imported = {
  express: { dependencies: ["express"], tools: ["@types/express"] },
  fastify: { dependencies: ["@countersign/fastify", "fastify"], tools: [] },
  sqlite: { dependencies: ["@countersign/store-sql", "libsql"], tools: [] },
  postgres: { dependencies: ["@countersign/store-sql", "pg"], tools: ["@types/pg"] },
  mariadb: { dependencies: ["@countersign/store-sql", "mysql2"], tools: [] },
};

function manifestOf({ name, framework, store, versions }: ProjectOptions): object {
  const [shown, kept] = [imported[framework], imported[store]];
  const tools = [...common, ...shown.tools, ...kept.tools];
  return {
    name,
    version: "0.0.0",
    private: true,
    type: "module",
    scripts: {
      build: "tsc",
      start: "node dist/src/server.js",
      dev: "tsx watch scripts/dev.ts",
      test: "tsc && node --test dist/test/platform.test.js",
      keys: "tsx scripts/keys.ts",
      play: "tsx scripts/play.ts",
    },
    dependencies: versionsOf(["countersign", ...shown.dependencies, ...kept.dependencies], versions),
    devDependencies: versionsOf(tools, versions),
    engines: { node: ">=20.19.0" },
  };
}

function versionsOf(
  packages: readonly string[],
  versions: ProjectOptions["versions"],
): Record<string, string> {
  const entries = packages.toSorted().map((name) => {
    const version = versions[name];
    if (version === undefined) throw new Error(`the version of ${name} is not known`);
    // A release may write a range there.
    return [name, `^${version.replace("^", "")}`] as const;
  });
  return Object.fromEntries(entries);
}
