// The code of READMEs and pages, and a caller that is run afterwards, in TypeScript projects of many kinds: the oldest supported compiler to the
// current one, ES modules and CommonJS, and every way to resolve modules. docs/using.md says what each of them needs.
import { cpSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { inParallel, makeModule, manifest, node, project, root, run, writeJson } from "./support.mjs";

const current = manifest().devDependencies.typescript;
const compilers = ["5.0.4", "5.9.3", current];

// Types for node:sqlite, which those of Node 20 do not have.
const nodeTypes = "@types/node@22.20.5";
// They move what older ones export.
const newestNodeTypes = "newest-node-types@npm:@types/node@26.6.6";
const driverTypes = "@types/better-sqlite3@9.6.0";

// In each folder: what is compiled in one go, and what of it is run.
const folders = {
  esm: {
    type: "module",
    sources: ["snippets", "guide", "reference", "receive.ts", "drivers.ts", "require-caller.ts"],
  },
  cjs: {
    type: "commonjs",
    sources: ["snippets", "reference", "receive.ts", "drivers.ts", "require-caller.ts"],
  },
  importing: { type: "commonjs", sources: ["import-caller.ts"] },
};

const commonOptions = {
  target: "es2022",
  lib: ["es2022"],
  types: ["node"],
  strict: true,
  esModuleInterop: true,
  rootDir: ".",
};

const isAnEnd = (version) => version === compilers[0] || version === current;
// With `checked`, our own declarations are checked as well (skipLibCheck: false), by the oldest and the newest. Without, no error may
// remain in any file. What both take, the one between them takes.
const kinds = [
  {
    name: "ES modules, nodenext",
    folder: "esm",
    module: "nodenext",
    checked: isAnEnd,
    without: (version) => !isAnEnd(version),
  },
  {
    name: "ES modules, bundler",
    folder: "esm",
    module: "esnext",
    moduleResolution: "bundler",
    without: (version) => !isAnEnd(version),
  },
  { name: "CommonJS, nodenext", folder: "cjs", module: "nodenext", refused: (v) => v === "5.0.4" },
  {
    name: "CommonJS, nodenext, import()",
    folder: "importing",
    module: "nodenext",
    without: (version) => !isAnEnd(version),
  },
  {
    name: "CommonJS, node10",
    folder: "cjs",
    module: "commonjs",
    moduleResolution: "node10",
    checked: isAnEnd,
    // TypeScript 7 does not have it any more.
    without: (version) => version === current,
  },
];

/** Fails unless every project compiles, and its caller pays, or is refused in just the way that the documentation says. */
export async function checkTypes(folder) {
  const rows = compilers.flatMap((version) =>
    kinds.filter(({ without }) => without?.(version) !== true).map((kind) => ({ version, kind })),
  );
  copySources(folder);
  await inParallel(rows, (row) => checkRow(folder, row));
  const installed = (name) => join(folder, "node_modules", name);
  renameSync(installed("@types/node"), installed("older-node-types"));
  renameSync(installed("newest-node-types"), installed("@types/node"));
  await checkRow(folder, { version: current, kind: kinds[0], title: "with the newest @types/node" });
}

/** What the sources import beside our packages, the types of it, and the compilers. */
export function typeDependencies(tarballs) {
  const { dependencies: used, devDependencies: types } = manifest("examples", "snippets");
  const others = Object.entries({ ...used, ...types })
    .filter(([name]) => tarballs[name] === undefined && name !== "@types/node")
    .map(([name, version]) => `${name}@${version}`);
  const aliases = compilers.map((version) => `typescript-${version}@npm:typescript@${version}`);
  return [...others, ...aliases, nodeTypes, newestNodeTypes, driverTypes];
}

function copySources(folder) {
  for (const [part, { type, sources }] of Object.entries(folders)) {
    makeModule(join(folder, part), type);
    for (const source of sources) copySource(source, join(folder, part));
  }
  for (const file of ["send.mjs", "types/run-caller.mjs"]) {
    cpSync(join(project, file), join(folder, file.replace("types/", "")));
  }
}

function copySource(source, target) {
  const snippets = join(root, "examples", "snippets", "src");
  if (source === "guide" || source === "reference")
    return cpSync(join(snippets, source), join(target, source), { recursive: true });
  if (source !== "snippets") return cpSync(join(project, "types", source), join(target, source));
  for (const entry of readdirSync(snippets, { withFileTypes: true })) {
    if (entry.isFile()) cpSync(join(snippets, entry.name), join(target, entry.name));
  }
}

async function checkRow(folder, { version, kind, title: what = kind.name }) {
  const { folder: part } = kind;
  const checked = kind.checked?.(version) ?? false;
  const refused = kind.refused?.(version) ?? false;
  const title = `TypeScript ${version}, ${what}`;
  const id = title.replaceAll(/[^\w.]+/g, "-");
  const { module, moduleResolution } = kind;
  const compilerOptions = {
    module,
    moduleResolution,
    ...commonOptions,
    skipLibCheck: !checked,
    // Without resolution modes the types of ES modules have no name in the declarations of a CommonJS file (TS2841).
    declaration: !refused && part !== "importing",
    outDir: id,
  };
  const config = join(folder, part, `${id}.json`);
  writeJson(config, { compilerOptions, include: ["*.ts", "guide/*.ts", "reference/*.ts"] });
  const tsc = join(folder, "node_modules", `typescript-${version}`, "bin", "tsc");
  const { status, stdout } = await run(process.execPath, [tsc, "-p", config, "--pretty", "false"], folder);
  const all = errorsOf(stdout);
  const errors = all.filter(({ file }) => !checked || !isOfAnother(file));
  // A compiler that failed and told no error did not even start.
  const compiled = errors.length === 0 && (status === 0 || all.length > 0);
  if (refused ? !isRefusedAsDocumented(errors) : !compiled) {
    const told = errors.map(({ line }) => line).join("\n") || stdout;
    throw new Error(`${title}: tsc ended with ${status}\n${told}`);
  }
  if (!refused) {
    const caller = part === "importing" ? "import-caller.js" : "require-caller.js";
    await node(["run-caller.mjs", join(folder, part, id, caller)], folder);
  }
  console.log(`ok ${title}${refused ? ": TS1479, as documented" : ""}`);
}

// "The current file is a CommonJS module … the referenced file is an ECMAScript module": that, and nothing else.
function isRefusedAsDocumented(errors) {
  return errors.length > 0 && errors.every(({ code }) => code === "TS1479");
}

function errorsOf(stdout) {
  const lines = stdout.split("\n").filter((line) => /(^|: )error TS\d+: /.test(line));
  return lines.map((line) => ({
    line,
    file: /^(.+?)\(\d+,\d+\): /.exec(line)?.[1] ?? "",
    code: /TS\d+/.exec(line)?.[0],
  }));
}

// pg's own types need a newer compiler than the oldest that ours are for.
function isOfAnother(file) {
  return /node_modules\/(?!.*node_modules\/)(?!@countersign\/|countersign\/)/.test(file);
}
