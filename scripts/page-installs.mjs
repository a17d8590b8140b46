// What each page tells its reader to install, as one command that works before npm has the packages: by their tarballs.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { pageFiles } from "../site/scripts/source.mjs";
import { ownDependencies } from "../test/consumers/own-dependencies.mjs";
import { memberFolders, root, workspacePackages } from "./workspace.mjs";

const own = new Set([...workspacePackages.values()].map(({ manifest }) => manifest.name));

/**
 * A line for each set of packages that pages install, and the files of these pages from the root. `tarballs` has the tarball of each
 * package of ours by its name; what these depend on of ours is in the line too.
 */
export function pageInstalls(tarballs) {
  const pagesOf = new Map();
  for (const file of installingFiles()) {
    const line = installLine(installedBy(readFileSync(path.join(root, file), "utf8")), tarballs);
    if (line !== undefined) pagesOf.set(line, [...(pagesOf.get(line) ?? []), file]);
  }
  return [...pagesOf].map(([line, files]) => ({ line, files }));
}

/** Undefined where no package is ours: npm has what the others install. */
function installLine(names, tarballs) {
  const ours = names.filter((name) => own.has(name));
  if (ours.length === 0) return undefined;
  const files = ownDependencies(ours).map((name) => tarballs[name]);
  return ["npm install", ...files.toSorted(byName), ...names.filter((name) => !own.has(name))].join(" ");
}

/** The packages of all `npm install` of a text, each once and in the order of their names. */
export function installedBy(text) {
  const lines = text.replaceAll(/\\\n */g, "").matchAll(/^ *npm install ([^#\n]*)/gm);
  const words = [...lines].flatMap(([, line]) => line.trim().split(/ +/));
  return [...new Set(words.filter((word) => word !== "" && !word.startsWith("-")))].toSorted(byName);
}

// Pages with the same packages in another order have the same line.
function byName(one, other) {
  return one < other ? -1 : 1;
}

/** Every text of the repository that a user reads, from the root. */
function installingFiles() {
  const documents = readdirSync(path.join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`);
  const readmes = memberFolders().map((folder) => `${folder}/README.md`);
  return ["README.md", ...pageFiles().toSorted(), ...documents, ...readmes].filter((file) =>
    existsSync(path.join(root, file)),
  );
}
