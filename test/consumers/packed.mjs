// Installs the packed tarballs into real projects, as users will: ESM and CommonJS, Express 5 and 4, and a TypeScript project
// that checks the published types. Each receives one signed payout and one webhook over HTTP.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { npmCommand } from "../../scripts/setup.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "../..");
const work = mkdtempSync(join(tmpdir(), "countersign-consumers-"));

const consumers = [
  { name: "esm-express-5", type: "module", express: "5", entry: "receive.mjs" },
  { name: "esm-express-4", type: "module", express: "4", entry: "receive.mjs" },
  { name: "cjs-express-5", type: "commonjs", express: "5", entry: "receive.cjs" },
];

try {
  const tarballs = pack();
  for (const consumer of consumers) {
    const folder = install(consumer, tarballs);
    run(process.execPath, [consumer.entry], folder);
    console.log(`ok ${consumer.name}`);
  }
  checkTypes(install({ name: "types", type: "module", express: "5", types: true }, tarballs));
  console.log("ok types");
} finally {
  rmSync(work, { recursive: true, force: true });
}

function pack() {
  const target = join(work, "tarballs");
  mkdirSync(target);
  for (const name of readdirSync(join(root, "packages"))) {
    npm(["pack", "--silent", "--pack-destination", target], join(root, "packages", name));
  }
  return readdirSync(target).map((file) => join(target, file));
}

function install({ name, type, express, types = false }, tarballs) {
  const folder = join(work, name);
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name, private: true, type }));
  for (const file of ["receive.mjs", "receive.cjs", "receive.ts", "send.mjs"])
    cpSync(join(here, "project", file), join(folder, file));
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const tools = types
    ? ["typescript", "@types/node", "@types/express"].map((tool) => `${tool}@${devDependencies[tool]}`)
    : [];
  npm(
    ["install", "--no-audit", "--no-fund", "--loglevel=error", `express@${express}`, ...tools, ...tarballs],
    folder,
  );
  return folder;
}

function checkTypes(folder) {
  const options = {
    module: "NodeNext",
    target: "ES2022",
    strict: true,
    noEmit: true,
    types: ["node"],
    skipLibCheck: false,
  };
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ compilerOptions: options, files: ["receive.ts"] }),
  );
  run(process.execPath, [join(folder, "node_modules", "typescript", "bin", "tsc"), "-p", "."], folder);
}

function npm(args, cwd) {
  const { file, args: all, shell } = npmCommand(process.env, process.platform, args);
  run(file, all, cwd, shell);
}

function run(file, args, cwd, shell = false) {
  const { status, stdout, stderr, error } = spawnSync(file, args, { cwd, shell, encoding: "utf8" });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${args.join(" ")} in ${cwd} ended with ${status}\n${stdout}\n${stderr}`);
}
