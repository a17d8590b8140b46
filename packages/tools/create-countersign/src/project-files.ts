import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { choices, type Choices, type Store } from "./choices.ts";
import { chosenLines } from "./pieces.ts";

/** Contents by path, with slashes, relative to the folder of the project. */
export type ProjectFiles = ReadonlyMap<string, string>;

/** What a project is made of. */
export interface ProjectOptions extends Choices {
  readonly name: string;
  /** The folder that scripts/build-templates.mjs has written. */
  readonly templates: string;
  /** Of what the templates use, by package. */
  readonly versions: Readonly<Record<string, string>>;
}

// Redis keeps the nonces alone; all else is as with PostgreSQL.
const databases: Readonly<Record<Store, string>> = {
  sqlite: "sqlite",
  postgres: "postgres",
  redis: "postgres",
};

/** Makes the files of a project in memory. */
export function projectFiles(options: ProjectOptions): ProjectFiles {
  const { name, framework, store, language, templates } = options;
  const files = new Map<string, string>();
  for (const piece of ["common", framework, databases[store]]) {
    const folder = path.join(templates, language, piece);
    for (const file of filesUnder(folder)) {
      const text = chosenLines(readFileSync(path.join(folder, file), "utf8"), options);
      const named = text
        .replaceAll("{{name}}", name)
        .replaceAll("{{framework}}", choices.framework[framework]);
      files.set(projectPath(file), named);
    }
  }
  files.set("package.json", `${JSON.stringify(manifestOf(files, options), undefined, 2)}\n`);
  return files;
}

function filesUnder(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)));
}

// npm leaves .gitignore out of a package, so that hidden files begin with _ there.
function projectPath(file: string): string {
  return file.split(path.sep).join("/").replace(/^_/, ".");
}

const scripts = {
  js: {
    start: "node src/server.js",
    dev: "node --watch src/server.js",
    test: "node --test test/platform.test.js",
    keys: "node scripts/keys.js",
    play: "node scripts/play.js",
  },
  ts: {
    build: "tsc",
    start: "node dist/src/server.js",
    dev: "tsx watch src/server.ts",
    test: "tsc && node --test dist/test/platform.test.js",
    keys: "tsx scripts/keys.ts",
    play: "tsx scripts/play.ts",
  },
};

function manifestOf(files: ProjectFiles, { name, language, versions }: ProjectOptions): object {
  const used = importedBy(files, (file) => file.startsWith("src/"));
  const tested = importedBy(files, (file) => !file.startsWith("src/")).filter(
    (module) => !used.includes(module),
  );
  const tools = language === "ts" ? ["tsx", "typescript", ...typesOf(["node", ...used], versions)] : [];
  return {
    name,
    version: "0.0.0",
    private: true,
    type: "module",
    scripts: scripts[language],
    dependencies: versionsOf(used, versions),
    devDependencies: versionsOf([...tested, ...tools], versions),
    engines: { node: ">=20.19.0" },
  };
}

/** The packages that the files import: what is imported is depended on, and nothing else. */
function importedBy(files: ProjectFiles, isAsked: (file: string) => boolean): string[] {
  const imports = / from "(?<module>(?:@[^/"]+\/)?[^@./"][^/"]*)/g;
  const modules = [...files]
    .filter(([file]) => isAsked(file) && /\.[jt]s$/.test(file))
    .flatMap(([, text]) => [...text.matchAll(imports)].map(({ groups }) => groups?.["module"] ?? ""));
  return [...new Set(modules)].filter((module) => !module.startsWith("node:"));
}

function typesOf(modules: readonly string[], versions: ProjectOptions["versions"]): string[] {
  return modules.map((module) => `@types/${module}`).filter((types) => versions[types] !== undefined);
}

function versionsOf(
  modules: readonly string[],
  versions: ProjectOptions["versions"],
): Record<string, string> {
  const entries = modules.toSorted().map((module) => {
    const version = versions[module];
    if (version === undefined) throw new Error(`a template imports ${module}, whose version is not known`);
    // A release may write a range there.
    return [module, `^${version.replace("^", "")}`] as const;
  });
  return Object.fromEntries(entries);
}
