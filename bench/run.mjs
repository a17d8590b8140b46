// npm run bench [-- groups] [-- --large]: installs this folder's own dependencies once, then prints ratios and sizes. Nothing here
// is asserted by a test. Groups are chain, ratios, imports, peers, engines, cpu, sinks, stores, transactions, growth and pruning; default all. --large adds
// ten million keys: two minutes. --against /path/to/another/checkout: the groups cpu and transactions measure that one's packages
// too, in the same rounds. --node /path/to/another/node: the group ratios runs servers on that one too. --json FILE: the results, also as JSON.
import { spawnSync } from "node:child_process";
import { statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ensureReady, npmCommand } from "../scripts/setup.mjs";

ensureReady();
const folder = fileURLToPath(new URL(".", import.meta.url));
const writtenAt = (name) => statSync(new URL(name, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0;
// npm writes the second one when it has installed.
if (writtenAt("node_modules/.package-lock.json") < writtenAt("package-lock.json")) {
  const { file, args, shell } = npmCommand(process.env, process.platform, ["ci"]);
  const { status } = spawnSync(file, args, { cwd: folder, stdio: ["ignore", 2, 2], shell });
  if (status !== 0) process.exit(1);
}

const { verificationRatio } = await import("./verify.mjs");
const { chainRatio } = await import("./chain.mjs");
const { payoutHttpRatio, webhookHttpRatio } = await import("./http.mjs");
const { cpuRatios, hostileHeader, refusalRatio } = await import("./ratios.mjs");
const { importTimes } = await import("./imports.mjs");
const { middlewarePeers, signaturePeers, webhookPeers } = await import("./peers.mjs");
const { enginesOnCores } = await import("./pool.mjs");
const { payoutCpu, webhookCpu } = await import("./cpu.mjs");
const { sinkCosts } = await import("./sinks.mjs");
const { redisRoundTrips, redisGrowth } = await import("./redis.mjs");
const { postgresRatios } = await import("./postgres.mjs");
const { postgresGrowth, sqliteGrowth } = await import("./growth.mjs");
const { postgresPruning, sqlitePruning } = await import("./pruning.mjs");
const { postgresLarge } = await import("./large.mjs");
const { mariadbTransactions, postgresEvents, postgresTransactions, sqliteTransactions } =
  await import("./transactions.mjs");

// A measure gives one result or line of text, a list of them, or undefined where its engine is missing.
const groups = {
  chain: [verificationRatio, chainRatio, payoutHttpRatio, webhookHttpRatio],
  ratios: [cpuRatios, refusalRatio, hostileHeader],
  imports: [importTimes],
  peers: [signaturePeers, webhookPeers, middlewarePeers],
  cpu: [payoutCpu, webhookCpu],
  sinks: [sinkCosts],
  engines: [enginesOnCores],
  stores: [redisRoundTrips, postgresRatios],
  transactions: [postgresTransactions, mariadbTransactions, sqliteTransactions, postgresEvents],
  growth: [sqliteGrowth, redisGrowth, postgresGrowth],
  pruning: [sqlitePruning, postgresPruning],
  large: [postgresLarge],
};

const { values, positionals } = parseArgs({
  options: {
    large: { type: "boolean", default: false },
    against: { type: "string" },
    node: { type: "string", multiple: true, default: [] },
    json: { type: "string" },
  },
  allowPositionals: true,
});
const chosen = positionals.length > 0 ? positionals : Object.keys(groups).filter((name) => name !== "large");
if (values.large) chosen.push("large");
const unknown = chosen.find((name) => !Object.hasOwn(groups, name));
if (unknown !== undefined)
  throw new Error(`${unknown} is none of the groups ${Object.keys(groups).join(", ")}`);
if (values.against !== undefined && !chosen.includes("cpu") && !chosen.includes("transactions"))
  throw new Error("--against is for the groups cpu and transactions");
// npm starts this in the folder of package.json; a relative path is meant from where npm was called.
const from = process.env.INIT_CWD ?? process.cwd();
const against = values.against === undefined ? undefined : path.resolve(from, values.against);
const nodes = values.node.map((node) => path.resolve(from, node));
const told = [];

console.log(`Node ${process.version}`);
for (const measure of new Set(chosen.flatMap((name) => groups[name]))) {
  const results = await measure({ against, nodes });
  if (results === undefined) console.log(`LEFT OUT: ${measure.name}, its server is not installed here`);
  for (const result of [results ?? []].flat()) {
    console.log(typeof result === "string" ? result : asText(result));
    told.push({ measure: measure.name, ...(typeof result === "string" ? { text: result } : asData(result)) });
  }
}
if (!chosen.includes("large")) console.log("LEFT OUT: ten million keys; npm run bench -- --large");

if (values.json !== undefined) {
  const report = { node: process.version, groups: chosen, results: told };
  writeFileSync(path.resolve(from, values.json), `${JSON.stringify(report, undefined, 2)}\n`);
}

function asData({ name, ratio, target, met }) {
  return { name, value: ratio, target, met: met(ratio) };
}

function asText({ name, ratio, target, met }) {
  return `${name.padEnd(58)} ${ratio.toFixed(3)}   ${target.padEnd(8)} ${met(ratio) ? "met" : "NOT MET"}`;
}
