// A copy of the workspace in which a source file can be broken: the working tree stays as it is.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { existsSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { transformSync } from "@swc/core";

/** Copies sources, tests and what was built; installed packages are links. */
export class WorkspaceCopy {
  root = mkdtempSync(path.join(tmpdir(), "countersign-mutants-"));

  constructor(original) {
    const omitted = new Set([".git", "node_modules", "coverage"].map((name) => path.join(original, name)));
    const copied = (file) => !omitted.has(file) && path.basename(file) !== "node_modules";
    cpSync(original, this.root, { recursive: true, verbatimSymlinks: true, filter: copied });
    linkEntries(path.join(original, "node_modules"), path.join(this.root, "node_modules"));
    for (const folder of nestedModules(original)) {
      symlinkSync(folder, path.join(this.root, path.relative(original, folder)));
    }
  }

  /**
   * Puts `replace` in the place of `find` in a TypeScript source, which some tests import, and builds that file alone. Returns what
   * undoes it. Throws where `find` does not stand there exactly once.
   */
  mutate({ file, find, replace }) {
    if (!this.has(file)) throw new Error(`${file} is not there`);
    const source = path.join(this.root, file);
    const built = path.join(this.root, file.replace("/src/", "/dist/").replace(/\.ts$/, ".js"));
    const [text, code] = [source, built].map((name) => readFileSync(name, "utf8"));
    const times = text.split(find).length - 1;
    if (times !== 1) throw new Error(`${file} holds the text to find ${times} times, not once`);
    const mutated = text.replace(find, () => replace);
    writeFileSync(built, transpile(mutated));
    writeFileSync(source, mutated);
    return () => {
      writeFileSync(built, code);
      writeFileSync(source, text);
    };
  }

  has(file) {
    return existsSync(path.join(this.root, file));
  }

  remove() {
    rmSync(this.root, { recursive: true, force: true });
  }
}

function transpile(source) {
  const jsc = {
    target: "es2022",
    parser: { syntax: "typescript" },
    transform: { verbatimModuleSyntax: true },
    rewriteRelativeImportExtensions: true,
  };
  return transformSync(source, { swcrc: false, configFile: false, module: { type: "es6" }, jsc }).code;
}

// The workspace's own packages are relative links there, and lead into the copy here; every other package is the installed one.
function linkEntries(from, to) {
  mkdirSync(to);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [path.join(from, entry.name), path.join(to, entry.name)];
    if (entry.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else if (entry.name.startsWith("@")) linkEntries(source, target);
    else if (entry.name !== ".cache") symlinkSync(source, target);
  }
}

function nestedModules(root) {
  const found = [];
  const walk = (folder) => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (!entry.isDirectory() || entry.name === ".git") continue;
      const child = path.join(folder, entry.name);
      if (entry.name !== "node_modules") walk(child);
      else if (folder !== root) found.push(child);
    }
  };
  walk(root);
  return found;
}
