// Every platform that `npm create countersign` can write, by the packed command: installed with the packed packages, type-checked,
// tested by its own tests, and played with as its README says. One after the other, with the seconds of each:
//     node test/support/runs/with-servers.mjs node test/consumers/created-projects.mjs [express-sqlite …]
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { createConnection } from "mysql2/promise";
import { Client } from "pg";
import { workspacePackages } from "../../scripts/workspace.mjs";
import { ownDependencies } from "./own-dependencies.mjs";
import { install, node, npm, pack, run, writeJson } from "./support.mjs";

/** Of each store that needs a server: where it is, and how the project's own part of it is made and removed. */
const servers = {
  postgres: {
    url: process.env.DATABASE_URL ?? "postgres://postgres@127.0.0.1:5432/test",
    environment: (url, own) => ({ DATABASE_URL: url, DATABASE_SCHEMA: own, STORES_SCHEMA: own }),
    make: () => undefined,
    async remove(url, own) {
      const client = new Client({ connectionString: url });
      await client.connect();
      await client.query(`DROP SCHEMA IF EXISTS ${own} CASCADE`);
      await client.end();
    },
  },
  mariadb: {
    url: process.env.MYSQL_URL ?? "mysql://root@127.0.0.1:3306/test",
    environment: (url, own) => ({ DATABASE_URL: new URL(`/${own}`, url).href }),
    make: (url, own) => askMariadb(url, `CREATE DATABASE ${own}`),
    remove: (url, own) => askMariadb(url, `DROP DATABASE IF EXISTS ${own}`),
  },
};

const asked = process.argv.slice(2);
const combinations = ["express", "fastify"].flatMap((framework) =>
  ["sqlite", ...Object.keys(servers)].map((store) => ({ name: `${framework}-${store}`, framework, store })),
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
  const used = Object.keys(devDependencies).filter((name) => /^(?:@countersign\/|countersign$)/.test(name));
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
  if (store in servers) process.env.DATABASE_URL = servers[store].url;
  const tested = await npm(["test"], folder);
  if (!/^(?:#|ℹ) pass [1-9]\d*$/m.test(tested)) throw new Error(`${name} has tested nothing:\n${tested}`);
  // Before there is a .env, which has it.
  if (framework === "express" && store in servers) await saysWhatItNeeds(folder, "DATABASE_URL");
  await npm(["run", "keys"], folder);
  await npm(["run", "build"], folder);
  const { scripts } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const [, ...started] = scripts.start.split(" ");
  await withOwnPart(store, name, async (env) => {
    const platform = spawn(process.execPath, started, piped(folder, env));
    await ending(platform, () => plays(folder, env, platform));
    if (platform.exitCode !== 0) throw new Error(`${name} ended with ${platform.exitCode}`);
  });
  await withOwnPart(store, name, async (env) => {
    const platform = spawn("npm", ["run", "dev"], { ...piped(folder, env), detached: true });
    await ending(platform, () => showsPages(platform), -platform.pid);
  });
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

/** Ends a platform after its `use`, with all processes that write to its output; those of the group `end`, where it is negative. */
async function ending(platform, use, end = platform.pid) {
  const limit = setTimeout(() => process.kill(end, "SIGKILL"), 120_000);
  try {
    await use();
    const close = once(platform, "close");
    process.kill(end, "SIGTERM");
    await close;
  } finally {
    clearTimeout(limit);
    if (platform.exitCode === null && platform.signalCode === null) process.kill(end, "SIGKILL");
  }
}

/** `npm run play` comes to the platform as the README says. */
async function plays(folder, env, { stdout }) {
  const [, PORT] = await printed(stdout, /^listening on http:\/\/127\.0\.0\.1:(\d+)$/m);
  const played = spawn("npm", ["run", "play"], piped(folder, { ...env, PORT }));
  const [statuses, [code]] = await Promise.all([textOf(played.stdout), once(played, "exit")]);
  const got = [...statuses.matchAll(/ (\d{3}) as expected$/gm)].map(([, status]) => status).join(" ");
  if (code !== 0 || got !== "200 409 401 200 200") throw new Error(`played ${code}: ${statuses}`);
}

/** A payout and a webhook of the sandbox's page are taken, and the inspector's shows both. */
async function showsPages({ stdout }) {
  const page = String.raw`\n {2}(http:\S+)\/#token=(\S+)\n`;
  const [, ...pages] = await printed(stdout, new RegExp(`^Sandbox.*${page}Inspector.*${page}`, "m"));
  const ask = async ([url, token], path, body) => {
    const headers = { "X-Page-Token": token, Origin: url, "Content-Type": "application/json" };
    const sent = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(url + path, { ...sent, headers });
    return await response.json();
  };
  const [sandbox, inspector] = [pages.slice(0, 2), pages.slice(2)];
  const { payouts } = await ask(sandbox, "/sandbox/overview");
  const { asExpected } = await ask(sandbox, "/sandbox/payouts", { url: payouts.url });
  await ask(sandbox, "/sandbox/buyers/buyer-1/status", { status: "ACTIVE" });
  const shown = async () => {
    const { requests } = await ask(inspector, "/inspector/requests");
    return requests.map(({ status, outcome }) => `${status} ${outcome}`).join();
  };
  const deadline = Date.now() + 30_000;
  while ((await shown()) !== "200 pass,200 pass" && Date.now() < deadline) await pause(100);
  if (!asExpected || (await shown()) !== "200 pass,200 pass") throw new Error(`shown: ${await shown()}`);
}

function piped(cwd, env) {
  return { cwd, env, stdio: ["ignore", "pipe", "inherit"] };
}

/** With an own part of the store's server, which is removed afterwards. */
async function withOwnPart(store, name, use) {
  const own = `created_${process.pid}_${name.replaceAll("-", "_")}`;
  const { url, make, environment, remove } = servers[store] ?? {};
  // What is refused here is to be refused.
  const env = { ...process.env, COUNTERSIGN_STDERR: "off", PORT: "0", ...environment?.(url, own) };
  await make?.(url, own);
  try {
    await use(env);
  } finally {
    await remove?.(url, own);
  }
}

async function printed(stdout, pattern) {
  let text = "";
  for await (const chunk of stdout.iterator({ destroyOnReturn: false })) {
    text += chunk;
    const found = pattern.exec(text);
    if (found !== null) return found;
  }
  throw new Error(`the platform has ended:\n${text}`);
}

async function textOf(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

async function askMariadb(url, sql) {
  const connection = await createConnection(url);
  await connection.query(sql);
  await connection.end();
}

async function timed(title, step) {
  const start = performance.now();
  const result = await step();
  console.log(`${title} ${((performance.now() - start) / 1_000).toFixed(1)} s`);
  return result;
}
