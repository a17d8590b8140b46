// Makes a fresh clone ready: installs when the lock file asks for it, builds what changed. Node's builtins alone, since
// nothing else is there yet. All output goes to stderr: stdout belongs to the command that is being prepared.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { memberFolders, root } from "./workspace.mjs";

export { root };

const minimumNode = [20, 19];

/**
 * Installs and builds what is missing or out of date. `project` is the folder given to `tsc -b`, or several: `.` is everything,
 * tests included. Throws a SetupError with a message of one line.
 */
export function ensureReady({ build = true, project = "." } = {}) {
  const problem = nodeProblem(process.versions.node);
  if (problem !== undefined) throw new SetupError(problem);
  if (!isInstallCurrent(root)) install();
  if (build) ensureBuilt(project);
}

/** What a script prints and exits on, instead of a stack trace. */
export class SetupError extends Error {
  name = "SetupError";
}

/**
 * Runs `main`; a failed set-up ends the process with one line and exit code 1. Goes on when the output's reader, such as head, stops early:
 * the exit code says how it ended.
 */
export function runScript(main) {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", ignoreLostReader);
  Promise.resolve()
    .then(main)
    .catch((error) => {
      console.error(error instanceof SetupError ? error.message : error);
      process.exitCode = 1;
    });
}

function ignoreLostReader(error) {
  if (error.code !== "EPIPE") throw error;
}

/** One line when the version of Node is too old, else undefined. */
export function nodeProblem(version) {
  const [major, minor] = version.split(".").map(Number);
  const [minimumMajor, minimumMinor] = minimumNode;
  return major > minimumMajor || (major === minimumMajor && minor >= minimumMinor)
    ? undefined
    : `Node ${minimumNode.join(".")} or later is needed, this is ${version}`;
}

/** Whether node_modules of `folder` belongs to its lock file: same content as at the last look, or installed after it. */
export function isInstallCurrent(folder) {
  const lock = path.join(folder, "package-lock.json");
  const installed = path.join(folder, "node_modules", ".package-lock.json");
  if (!existsSync(installed)) return false;
  const digest = digestOf(readFileSync(lock));
  if (readStamp(folder, "lock") === digest) return true;
  if (statSync(installed).mtimeMs < statSync(lock).mtimeMs) return false;
  writeStamp(folder, "lock", digest);
  return true;
}

function install() {
  console.error("installing dependencies (npm ci): one to two minutes");
  // Under NODE_ENV=production npm would leave out the compiler. Its warnings are about packages of packages, which nobody here can change.
  const ci = ["ci", "--include=dev", "--loglevel=error"];
  const { file, args, shell } = npmCommand(process.env, process.platform, ci);
  if (!run(file, args, shell)) throw new SetupError("npm ci failed: see its output above");
  writeStamp(root, "lock", digestOf(readFileSync(path.join(root, "package-lock.json"))));
}

/** How to start npm: the one that runs this script when there is one, else the one on the path. */
export function npmCommand(env, platform, args) {
  const running = env.npm_execpath;
  if (running !== undefined && /[\\/]npm-cli\.c?js$/.test(running) && existsSync(running)) {
    return { file: process.execPath, args: [running, ...args], shell: false };
  }
  // npm is a .cmd file on Windows, which Node starts through a shell only; the arguments are constants.
  return { file: "npm", args, shell: platform === "win32" };
}

// tsc -b looks at every project; a fingerprint of the sources answers the usual "nothing changed" in milliseconds.
function ensureBuilt(project) {
  const projects = [project].flat();
  const stamp = `build-${project === "." ? "all" : digestOf(projects.join(" ")).slice(0, 16)}`;
  const fingerprint = buildFingerprint(root);
  if ([stamp, "build-all"].some((built) => readStamp(root, built) === fingerprint)) return;
  console.error(`building (tsc -b ${projects.join(" ")})`);
  const tsc = path.join(root, "node_modules", "typescript", "bin", "tsc");
  if (!run(process.execPath, [tsc, "-b", ...projects], false)) {
    throw new SetupError("the build failed: see the messages of tsc above");
  }
  writeStamp(root, stamp, buildFingerprint(root));
}

/** Changes whenever a source, a configuration or the compiler's own record of a build in `folder` changes. */
export function buildFingerprint(folder) {
  const lines = [readStamp(folder, "lock")];
  for (const member of memberFolders(folder).map((name) => path.join(folder, name))) {
    for (const file of [...filesUnder(path.join(member, "src")), ...filesUnder(path.join(member, "test"))]) {
      lines.push(describe(file));
    }
    for (const file of ["package.json", "tsconfig.json", "dist/.tsbuildinfo"]) {
      lines.push(describe(path.join(member, file)));
    }
  }
  for (const file of filesUnder(path.join(folder, "test"))) lines.push(describe(file));
  for (const name of listOf(folder).filter((file) => /^tsconfig.*\.json$/.test(file))) {
    lines.push(describe(path.join(folder, name)));
  }
  return digestOf(lines.join("\n"));
}

function filesUnder(folder) {
  return listOf(folder)
    .filter((name) => name !== "node_modules" && name !== "dist")
    .flatMap((name) => {
      const entry = path.join(folder, name);
      return statsOf(entry)?.isDirectory() === true ? filesUnder(entry) : [entry];
    });
}

function listOf(folder) {
  return existsSync(folder) ? readdirSync(folder).toSorted() : [];
}

function describe(file) {
  const stats = statsOf(file);
  return stats === undefined ? `${file} absent` : `${file} ${stats.size} ${stats.mtimeMs}`;
}

// Undefined for what somebody removes meanwhile, and for the links to nowhere by which some editors lock a file.
function statsOf(file) {
  return statSync(file, { throwIfNoEntry: false });
}

function digestOf(content) {
  return createHash("sha256").update(content).digest("hex");
}

function stampFile(folder, name) {
  return path.join(folder, "node_modules", ".cache", "countersign", `${name}.sha256`);
}

function readStamp(folder, name) {
  const file = stampFile(folder, name);
  return existsSync(file) ? readFileSync(file, "utf8") : undefined;
}

function writeStamp(folder, name, digest) {
  const file = stampFile(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, digest);
}

// What it prints is shown if it fails.
function run(file, args, shell) {
  const stdio = ["ignore", "pipe", "pipe"];
  const maxBuffer = 64 * 1024 * 1024;
  const { status, error, stdout, stderr } = spawnSync(file, args, { cwd: root, stdio, maxBuffer, shell });
  if (error !== undefined) throw new SetupError(`cannot run ${file}: ${error.message}`);
  if (status !== 0) process.stderr.write(Buffer.concat([stdout, stderr]));
  return status === 0;
}
