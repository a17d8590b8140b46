// Every platform that `npm create countersign` can write, by the packed command: installed with the packed packages, type-checked,
// tested by its own tests, and played with as its README says. One after the other, with the seconds of each:
//     node test/support/runs/with-servers.mjs node test/consumers/created-projects.mjs [express-sqlite …]
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { Client } from "pg";
import { workspacePackages } from "../../scripts/workspace.mjs";
import { ownDependencies } from "./own-dependencies.mjs";
import { install, node, npm, pack, run, writeJson } from "./support.mjs";

process.env.DATABASE_URL ??= "postgres://postgres@127.0.0.1:5432/test";

const asked = process.argv.slice(2);
const combinations = ["express", "fastify"].flatMap((framework) =>
  ["sqlite", "postgres"].map((store) => ({ name: `${framework}-${store}`, framework, store })),
);
const chosen = combinations.filter(({ name }) => asked.length === 0 || asked.includes(name));
if (chosen.length < asked.length)
  throw new Error(`expected some of ${combinations.map(({ name }) => name).join(", ")}`);

const work = mkdtempSync(join(tmpdir(), "countersign-created-"));
try {
  const tarballs = await timed("packed", () => pack(work, needed()));
  await timed("installed", () => createAll(tarballs));
  for (const combination of chosen) await timed(`ok ${combination.name}`, () => check(combination));
} finally {
  rmSync(work, { recursive: true, force: true });
}

/** The folders of what the projects depend on, and of the command. */
function needed() {
  const { devDependencies } = workspacePackages.get("create-countersign").manifest;
  const used = Object.keys(devDependencies).filter((name) => name.startsWith("@countersign/"));
  return ["create-countersign", ...ownDependencies(used).map(folderOf)];
}

function folderOf(name) {
  return name.replace("@countersign/", "");
}

/** Writes all projects by the packed command, and installs them as the workspaces of one folder: npm resolves everything once. */
async function createAll(tarballs) {
  const packages = [tarballs["create-countersign"]];
  const creator = await install(work, { name: "creator", type: "module", packages });
  const command = join(creator, "node_modules", "create-countersign", "dist", "cli.js");
  for (const { name, framework, store } of chosen) {
    await node([command, name, "--framework", framework, "--store", store], work);
    putTarballs(join(work, name), tarballs);
  }
  const overrides = Object.entries(tarballs).map(([name, file]) => [name, `file:${file}`]);
  const workspaces = chosen.map(({ name }) => name);
  writeJson(join(work, "package.json"), {
    private: true,
    workspaces,
    overrides: Object.fromEntries(overrides),
  });
  await npm(["install", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"], work);
}

async function check({ name, framework, store }) {
  const folder = join(work, name);
  const tested = await npm(["test"], folder);
  if (!/^(?:#|ℹ) pass [1-9]\d*$/m.test(tested)) throw new Error(`${name} has tested nothing:\n${tested}`);
  // Before there is a .env, which has it.
  if (framework === "express" && store === "postgres") await saysWhatItNeeds(folder, "DATABASE_URL");
  await npm(["run", "keys"], folder);
  await npm(["run", "build"], folder);
  const { scripts } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const [, ...started] = scripts.start.split(" ");
  const code = await plays(folder, name, () => spawn(process.execPath, started, piped(folder, name)));
  if (code !== 0) throw new Error(`${name} ended with ${code}`);
  // The watcher is the same for all.
  if (framework === "express" && store === "sqlite") {
    const dev = () => spawn("npm", ["run", "dev"], { ...piped(folder, name), detached: true });
    await plays(folder, name, dev, (child) => process.kill(-child.pid, "SIGTERM"));
  }
}

/** Puts the tarballs in place of the versions that a registry would have, and checks that these are of this release. */
function putTarballs(folder, tarballs) {
  const file = join(folder, "package.json");
  const content = JSON.parse(readFileSync(file, "utf8"));
  for (const group of [content.dependencies, content.devDependencies]) {
    for (const name of Object.keys(group).filter((dependency) => tarballs[dependency] !== undefined)) {
      const { version } = workspacePackages.get(folderOf(name)).manifest;
      if (group[name] !== `^${version}`) throw new Error(`${name}: ${group[name]} is not of this release`);
      group[name] = `file:${tarballs[name]}`;
    }
  }
  writeJson(file, content);
}

async function saysWhatItNeeds(folder, variable) {
  const value = process.env[variable];
  delete process.env[variable];
  const { status, stdout, stderr } = await run("npm", ["test"], folder);
  process.env[variable] = value;
  if (status === 0 || !`${stdout}${stderr}`.includes(`set ${variable}, for example`)) {
    throw new Error(`npm test without ${variable} ended with ${status}:\n${stdout}${stderr}`);
  }
}

/** Starts a platform with a schema of its own, to which `npm run play` comes as the README says. Gives the platform's exit code. */
async function plays(folder, name, start, stop = (child) => child.kill("SIGTERM")) {
  const platform = start();
  try {
    const port = await portOf(platform);
    const env = { ...environment(name), PORT: port };
    const played = spawn("npm", ["run", "play"], { ...piped(folder, name), env });
    const [statuses, [code]] = await Promise.all([textOf(played.stdout), once(played, "exit")]);
    const got = [...statuses.matchAll(/ (\d{3}) as expected$/gm)].map(([, status]) => status).join(" ");
    if (code !== 0 || got !== "200 409 401 200 200") throw new Error(`${name} played ${code}: ${statuses}`);
    const exit = once(platform, "exit");
    stop(platform);
    const [ended] = await exit;
    return ended;
  } finally {
    if (platform.exitCode === null && platform.signalCode === null) platform.kill("SIGKILL");
    await dropSchema(name);
  }
}

function piped(cwd, name) {
  return { cwd, env: environment(name), stdio: ["ignore", "pipe", "inherit"] };
}

function environment(name) {
  const own = `created_${process.pid}_${name.replaceAll("-", "_")}`;
  // What is refused here is to be refused.
  const quiet = { COUNTERSIGN_STDERR: "off" };
  return { ...process.env, ...quiet, PORT: "0", DATABASE_SCHEMA: own };
}

async function portOf({ stdout }) {
  for await (const line of createInterface({ input: stdout })) {
    const port = /^listening on http:\/\/127\.0\.0\.1:(\d+)$/.exec(line)?.[1];
    if (port !== undefined) return port;
  }
  throw new Error("the platform has ended without listening");
}

async function textOf(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

async function dropSchema(name) {
  if (name.includes("sqlite")) return;
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  await client.query(`DROP SCHEMA IF EXISTS ${environment(name).DATABASE_SCHEMA} CASCADE`);
  await client.end();
}

async function timed(title, step) {
  const start = performance.now();
  const result = await step();
  console.log(`${title} ${((performance.now() - start) / 1_000).toFixed(1)} s`);
  return result;
}
