// The packages and examples of this repository: where each one's folder is.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** The folders of members below `from` (a checkout's root), as `packages/kernel/core` and `examples/minimal`, with `/` on every system. */
export function memberFolders(from = root) {
  const groups = foldersIn(path.join(from, "packages")).map((group) => `packages/${group}`);
  return [...groups, "examples"]
    .flatMap((group) => foldersIn(path.join(from, group)).map((name) => `${group}/${name}`))
    .filter((folder) => existsSync(path.join(from, folder, "package.json")));
}

const isPackage = (folder) => folder.startsWith("packages/");

/** Each package by the name of its folder, in the order of names: its folder from the root, and its package.json. */
export const workspacePackages = new Map(
  memberFolders()
    .filter(isPackage)
    .map((folder) => [path.posix.basename(folder), { folder, manifest: manifestOf(folder) }])
    .toSorted(([a], [b]) => (a < b ? -1 : 1)),
);

/** The folder of a package from the root: `packages/kernel/core` for `core`. Throws for a name that no package has. */
export function packageFolder(name) {
  const found = workspacePackages.get(name);
  if (found === undefined) throw new Error(`no package is called ${name}`);
  return found.folder;
}

// Entry points that are used alone, and the engines of the SQL stores, by the folder of their package. The source of one is the folder of its
// name in src.
const entryPoints = {
  cli: ["explain"],
  countersign: ["client", "outcomes", "payout", "webhooks"],
  devtools: ["inspector", "sandbox"],
  idempotency: ["work"],
  "store-sql": ["mysql", "postgres", "sqlite"],
};

/**
 * What has a page in reference/packages, by the page's name: each package, and the entry points above. `name` is what is imported,
 * `source` the folder of its source from the root, `manifest` that of its package.
 */
export const documentedParts = new Map(
  [...workspacePackages].flatMap(([own, { folder, manifest }]) => {
    const entries = (entryPoints[own] ?? []).map((entry) => {
      const isImported = manifest["exports"][`./${entry}`] !== undefined;
      const name = isImported ? `${manifest.name}/${entry}` : manifest.name;
      return [entry, { name, source: `${folder}/src/${entry}`, manifest }];
    });
    return [[own, { name: manifest.name, source: `${folder}/src`, manifest }]].concat(entries);
  }),
);

/** The .ts files of one of these from the root, without those of an entry point that has a page of its own. */
export function sourceFilesOf(part) {
  const { source } = documentedParts.get(part);
  const others = [...documentedParts.values()].filter((other) => other.source.startsWith(`${source}/`));
  return readdirSync(path.join(root, source), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => `${source}/${file.replaceAll(path.sep, "/")}`)
    .filter((file) => !others.some((other) => file.startsWith(`${other.source}/`)));
}

/** What the package.json in a folder from the root holds. */
export function manifestOf(folder) {
  return JSON.parse(readFileSync(path.join(root, folder, "package.json"), "utf8"));
}

function foldersIn(folder) {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}
