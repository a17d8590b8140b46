// npm run figures prints the size of the project, counted from its files: packages, lines, names, circles of imports, words. Nothing is run.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { workspacePackages, root } from "./workspace.mjs";

const tools = new Set(["cli", "devtools", "create-countersign", "store-contract"]);
const read = (file) => readFileSync(path.join(root, file), "utf8");
const lines = (files) => files.reduce((sum, file) => sum + read(file).split("\n").length - 1, 0);
const words = (files) => files.reduce((sum, file) => sum + read(file).split(/\s+/).filter(Boolean).length, 0);

const files = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\0")
  .filter((file) => file !== "" && !missing(file));
const published = [...workspacePackages.values()].filter(({ manifest }) => manifest.private !== true);
const within = (folder, pattern) =>
  files.filter((file) => file.startsWith(`${folder}/`) && pattern.test(file));
const sourceOf = ({ folder }) => within(`${folder}/src`, /\.ts$/);

const source = published.flatMap(sourceOf);
const tooling = published.filter(({ folder }) => tools.has(path.basename(folder))).flatMap(sourceOf);
const pages = files.filter((file) => /^packages\/.+\/page\//.test(file));
const tests = files.filter(
  (file) =>
    /^(test|packages|examples)\/(.+\/)?[^/]+\.(ts|mts|cts|mjs|cjs|js)$/.test(file) &&
    /(^|\/)test\//.test(file),
);
const long = source.filter((file) => lines([file]) > 300);
const documentation = files.filter((file) => /^(site\/(pages|codes)|docs)\/.+\.md$/.test(file));

/** The names that a module exports, those of `export *` of a sibling too. */
function namesOf(file) {
  const text = read(file).replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  const names = new Set();
  for (const [, list] of text.matchAll(/export (?:type )?\{([^}]*)\}/g)) {
    for (const item of list.split(",")) {
      const name = item
        .trim()
        .replace(/^type /, "")
        .split(" as ")
        .at(-1)
        ?.trim();
      if (name) names.add(name);
    }
  }
  for (const [, name] of text.matchAll(
    /^export (?:declare )?(?:async )?(?:abstract )?(?:function\*?|const|let|class|interface|type|enum|namespace) (\w+)/gm,
  ))
    names.add(name);
  for (const [, from] of text.matchAll(/export \* from "(\.[^"]+)"/g)) {
    for (const name of namesOf(path.join(path.dirname(file), from))) names.add(name);
  }
  return names;
}

/** The source of each entry point of a package: its subpath and how many names it exports. */
function entriesOf({ folder, manifest }) {
  return Object.entries(manifest.exports ?? {}).flatMap(([subpath, target]) => {
    const built = target?.types ?? target?.default;
    if (typeof built !== "string" || !built.startsWith("./dist/")) return [];
    const file = path.join(folder, built.replace("./dist/", "src/").replace(/\.d\.ts$|\.js$/, ".ts"));
    return files.includes(file) ? [{ name: manifest.name, subpath, names: namesOf(file) }] : [];
  });
}

/** Groups of files that import one another in a circle, type imports counted: the strongly connected parts of more than one file. */
function circles() {
  const imports = new Map(
    source.map((file) => [
      file,
      [...read(file).matchAll(/(?:from|import)\s*\(?"(\.[^"]+)"/g)].map(([, to]) =>
        path.join(path.dirname(file), to),
      ),
    ]),
  );
  const index = new Map();
  const low = new Map();
  const stack = [];
  const found = [];
  const visit = (file) => {
    index.set(file, index.size);
    low.set(file, index.get(file));
    stack.push(file);
    for (const to of imports.get(file) ?? []) {
      if (!imports.has(to)) continue;
      if (!index.has(to)) visit(to);
      if (stack.includes(to)) low.set(file, Math.min(low.get(file), low.get(to)));
    }
    if (low.get(file) !== index.get(file)) return;
    const part = stack.splice(stack.indexOf(file));
    if (part.length > 1) found.push(part);
  };
  for (const file of source) if (!index.has(file)) visit(file);
  return found;
}

function missing(file) {
  try {
    readFileSync(path.join(root, file));
    return false;
  } catch {
    return true;
  }
}

const entries = published.flatMap(entriesOf);
const roots = entries.filter(({ subpath }) => subpath === ".");
const sum = (some) => some.reduce((total, { names }) => total + names.size, 0);
const inCircles = circles();
const shown = (figure, value) => console.log(`${figure.padEnd(44)} ${String(value).padStart(8)}`);

shown("published packages", published.length);
shown("lines of source", lines(source));
shown("  of them tools", lines(tooling));
shown("lines of the pages' own files", lines(pages));
shown("files of source over 300 lines", long.length);
shown("names in all entry points", sum(entries));
shown("  in the roots", sum(roots));
shown("  in the root of core", sum(roots.filter(({ name }) => name.endsWith("/core"))));
shown("circles of files, type imports counted", inCircles.length);
shown("lines of tests, without JSON", lines(tests));
shown("words of documentation", words(documentation));
if (process.argv.includes("--files")) {
  for (const file of long) console.log(`over 300 lines: ${file} ${lines([file])}`);
  for (const part of inCircles) console.log(`circle: ${part.join(" ")}`);
  for (const { name, subpath, names } of entries)
    console.log(`${path.posix.join(name, subpath)} ${names.size}: ${[...names].join(" ")}`);
}
