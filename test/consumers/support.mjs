// What the consumers' projects are made with: the packed tarballs, npm, and processes that have to succeed.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { writePackedTexts } from "../../scripts/packed-texts.mjs";
import { npmCommand } from "../../scripts/setup.mjs";
import { workspacePackages } from "../../scripts/workspace.mjs";

const here = dirname(fileURLToPath(import.meta.url));
export const root = resolve(here, "../..");
export const project = join(here, "project");

/** Packs the packages, by default all that are published, and returns the tarballs by package name. */
export async function pack(work, names = publishedNames()) {
  const target = join(work, "tarballs");
  mkdirSync(target);
  const packed = await packAll(target, names);
  return Object.fromEntries(packed.map(({ name, tarball }) => [name, tarball]));
}

/** Packs packages into a folder by one process: name, files, unpackedSize and tarball of each. */
export async function packAll(target, names = publishedNames()) {
  const copies = mkdtempSync(join(tmpdir(), "countersign-packed-"));
  try {
    return await packCopies(target, copies, names);
  } finally {
    rmSync(copies, { recursive: true, force: true });
  }
}

// Others read the packages meanwhile: what npm gets beside them is written into copies.
async function packCopies(target, copies, names) {
  for (const { folder } of workspacePackages.values()) {
    const left = new Set(["node_modules", "test"].map((name) => join(root, folder, name)));
    cpSync(join(root, folder), join(copies, folder), { recursive: true, filter: (file) => !left.has(file) });
  }
  writePackedTexts(copies);
  const chosen = names.map((name) => join(copies, workspacePackages.get(name).folder));
  const told = await npm(
    ["pack", "--json", "--loglevel=error", "--pack-destination", target, ...chosen],
    copies,
  );
  return Object.values(JSON.parse(told)).map((entry) => ({
    ...entry,
    tarball: join(target, entry.filename),
  }));
}

function publishedNames() {
  return [...workspacePackages.keys()].filter(
    (name) => workspacePackages.get(name).manifest.private !== true,
  );
}

/** Makes the folder `name` in `work`, and installs `packages` (`name@version`, or paths of tarballs) there. */
export async function install(work, { name, type, packages }) {
  const folder = join(work, name);
  makeModule(folder, type);
  const quickly = ["--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
  await npm(["install", ...quickly, ...packages], folder);
  return folder;
}

/** A folder whose files are ES modules (`module`) or CommonJS (`commonjs`). */
export function makeModule(folder, type) {
  mkdirSync(folder, { recursive: true });
  writeJson(join(folder, "package.json"), { name: "consumer", private: true, type });
  return folder;
}

export function writeJson(file, content) {
  writeFileSync(file, JSON.stringify(content, null, 2));
}

export function manifest(...path) {
  return JSON.parse(readFileSync(join(root, ...path, "package.json"), "utf8"));
}

/** `name@version` of tools that the workspace itself uses. */
export function workspaceTools(...names) {
  const { devDependencies } = manifest();
  return names.map((name) => `${name}@${devDependencies[name]}`);
}

export function npm(args, cwd) {
  const { file, args: all, shell } = npmCommand(process.env, process.platform, args);
  return succeed(file, all, cwd, shell);
}

export function tryNpm(args, cwd) {
  const { file, args: all, shell } = npmCommand(process.env, process.platform, args);
  return run(file, all, cwd, shell);
}

export function node(args, cwd) {
  return succeed(process.execPath, args, cwd);
}

/** Runs a program that has to end with 0, and returns its stdout. */
export async function succeed(file, args, cwd, shell = false) {
  const { status, stdout, stderr } = await run(file, args, cwd, shell);
  if (status === 0) return stdout;
  throw new Error(`${args.join(" ")} in ${cwd} ended with ${status}\n${stdout}\n${stderr}`);
}

/** Runs a program to its end, however that is. */
export function run(file, args, cwd, shell = false) {
  return new Promise((fulfil, reject) => {
    const child = spawn(file, args, { cwd, shell, stdio: ["ignore", "pipe", "pipe"] });
    running.add(child);
    child.once("close", () => running.delete(child));
    const [stdout, stderr] = [[], []];
    child.stdout.on("data", (chunk) => stdout.push(chunk));
    child.stderr.on("data", (chunk) => stderr.push(chunk));
    child.once("error", reject);
    child.once("close", (status) => fulfil({ status, stdout: textOf(stdout), stderr: textOf(stderr) }));
  });
}

const running = new Set();

/** Ends what still runs, and waits for it: before its folders are removed. */
export async function endAll() {
  await Promise.all(
    [...running].map((child) => {
      const closed = once(child, "close");
      child.kill("SIGTERM");
      return closed;
    }),
  );
}

/** Two at a time. After a failure nothing more begins, and what runs may end first: the caller removes its folder. */
export async function inParallel(items, work) {
  const rest = [...items];
  const worker = async () => {
    try {
      for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item);
    } finally {
      rest.length = 0;
    }
  };
  const ended = await Promise.allSettled([worker(), worker()]);
  const failed = ended.find(({ status }) => status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

const textOf = (chunks) => Buffer.concat(chunks).toString("utf8");
