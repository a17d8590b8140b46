// The release itself, in a clone: nothing that happens there reaches the checkout, and nothing can be pushed.
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  lstatSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { memberFolders } from "../../scripts/workspace.mjs";
import { node, root, succeed } from "../consumers/support.mjs";

const git = (args, cwd) => succeed("git", args, cwd);

/** A clone of what is committed, on a branch, without a remote, with the installed dependencies of the checkout. */
export async function cloneCheckout(work) {
  const clone = join(work, "checkout");
  await git(["clone", "--quiet", "--no-local", root, clone], work);
  await git(["remote", "remove", "origin"], clone);
  // CI checks out a commit, and lerna wants a branch.
  await git(["checkout", "--quiet", "-B", "release"], clone);
  // A link is no folder: .gitignore does not mean it.
  appendFileSync(join(clone, ".git", "info", "exclude"), "node_modules\n");
  lendModules(join(root, "node_modules"), join(clone, "node_modules"));
  for (const folder of memberFolders(clone)) {
    const installed = join(root, folder, "node_modules");
    if (existsSync(installed)) symlinkSync(installed, join(clone, folder, "node_modules"));
  }
  return clone;
}

/** How many files of the checkout differ from what was cloned. */
export async function uncommitted() {
  const status = await git(["status", "--porcelain"], root);
  return status.split("\n").filter((line) => line !== "").length;
}

// Links of a workspace are relative, and lead to the clone's own packages there; all else is the checkout's.
function lendModules(from, to) {
  mkdirSync(to);
  for (const name of readdirSync(from)) {
    const source = join(from, name);
    if (lstatSync(source).isSymbolicLink()) symlinkSync(readlinkSync(source), join(to, name));
    else if (name.startsWith("@")) lendModules(source, join(to, name));
    else symlinkSync(source, join(to, name));
  }
}

export function publicManifests(checkout) {
  const manifests = memberFolders(checkout)
    .filter((folder) => folder.startsWith("packages/"))
    .map((folder) => join(checkout, folder))
    .map((folder) => [folder, JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))]);
  return new Map(manifests.filter(([, manifest]) => manifest.private !== true));
}

/**
 * Takes provenance out of the manifests: it is a statement of a workflow's identity, which nobody has here. Fails where one does
 * not ask for it, since that one would be published without.
 */
export async function withoutProvenance(clone) {
  for (const [folder, manifest] of publicManifests(clone)) {
    const { provenance, ...publishConfig } = manifest.publishConfig ?? {};
    if (provenance !== true) throw new Error(`${manifest.name} is not published with provenance`);
    writeFileSync(
      join(folder, "package.json"),
      `${JSON.stringify({ ...manifest, publishConfig }, null, 2)}\n`,
    );
  }
  await git(["commit", "--quiet", "--all", "--message", "chore: no provenance in a dry run"], clone);
}

export async function build(clone) {
  const projects = [...publicManifests(clone).keys()];
  await node([join(clone, "node_modules", "typescript", "bin", "tsc"), "-b", ...projects], clone);
}

/** lerna version: new versions and changelogs, in a commit with a tag. Returns the version. */
export async function raiseVersion(clone) {
  await lerna(["version", "--yes", "--no-push"], clone);
  const { version } = JSON.parse(readFileSync(join(clone, "lerna.json"), "utf8"));
  const tags = (await git(["tag", "--points-at", "HEAD"], clone)).trim();
  if (tags !== `v${version}`) throw new Error(`the commit of ${version} has the tags "${tags}"`);
  const left = await git(["status", "--porcelain"], clone);
  if (left !== "") throw new Error(`lerna version left behind\n${left}`);
  return version;
}

export async function publish(clone, registry) {
  await lerna(["publish", "from-package", "--yes", "--registry", registry], clone);
}

function lerna(args, clone) {
  return node([join(clone, "node_modules", "lerna", "dist", "cli.js"), ...args, "--loglevel", "warn"], clone);
}

/** Fails unless texts and manifests of the clone say what a release of the version says. */
export function checkRelease(clone, version) {
  const read = (...path) => readFileSync(join(clone, ...path), "utf8");
  const changelog = read("CHANGELOG.md");
  if (
    !changelog.startsWith("# Changelog\n\n## Unreleased\n\n## ") ||
    (!changelog.includes(`## ${version} (`) && !changelog.includes(`## [${version}](`))
  ) {
    throw new Error(`CHANGELOG.md has no section of ${version}`);
  }
  for (const [folder, manifest] of publicManifests(clone)) {
    if (manifest.version !== version) throw new Error(`${manifest.name} is ${manifest.version}`);
    if (!existsSync(join(folder, "CHANGELOG.md"))) throw new Error(`${manifest.name} has no changelog`);
    checkRanges(manifest, clone);
  }
}

// Exact dependencies, since packages of one release are tested together; peers from this release on.
function checkRanges({ name, version, dependencies = {}, peerDependencies = {} }, clone) {
  const own = new Set([...publicManifests(clone).values()].map((manifest) => manifest.name));
  const wrong = [
    ...Object.entries(dependencies).filter(([dependency, range]) => own.has(dependency) && range !== version),
    ...Object.entries(peerDependencies).filter(([peer, range]) => own.has(peer) && range !== `^${version}`),
  ];
  if (wrong.length > 0)
    throw new Error(`${name}@${version} needs ${wrong.map((entry) => entry.join("@")).join(", ")}`);
}
