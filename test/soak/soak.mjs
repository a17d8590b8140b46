// node test/soak/soak.mjs [--seconds 20] [--seed n] [--engines sqlite,redis,postgres,mariadb] [--modes lease,transaction,both]
// Two processes on one store, or three where handlers get the transaction, are killed and stopped under payouts, duplicates and replays; at the end everything has to add up.
import { generateKeyPairSync, randomInt } from "node:crypto";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { isContinuousIntegration } from "../support/servers/server-binaries.mjs";
import { unleash } from "./chaos.mjs";
import { createClient } from "./client.mjs";
import { engines } from "./engines.mjs";
import { load, settle } from "./load.mjs";
import { startPlatform } from "./platform.mjs";
import { createRandom } from "../fuzz/random.mjs";
import { serverUrl } from "./servers.mjs";
import { judge } from "./verdict.mjs";

// What the processes of each mode do: keep a lease, or give the handler the transaction.
const modes = {
  lease: ["lease", "lease"],
  transaction: ["transaction", "transaction", "transaction"],
  both: ["transaction", "lease", "transaction"],
};
// They have no transaction with the payouts.
const leaseOnly = new Set(["redis"]);

// What some processes need to start and to settle.
const overheadSeconds = 2;

const options = {
  seconds: { type: "string", default: process.env.SOAK_SECONDS ?? "20" },
  seed: { type: "string", default: process.env.SOAK_SEED ?? String(randomInt(2 ** 32 - 1)) },
  engines: { type: "string", default: Object.keys(engines).join(",") },
  modes: { type: "string", default: Object.keys(modes).join(",") },
};

// What a signal has to undo: a Ctrl-C must leave no process, folder, schema or key.
let undoCurrent = async () => {};
let isInterrupted = false;
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
]) {
  process.once(signal, () => {
    isInterrupted = true;
    void undoCurrent().finally(() => process.exit(code));
  });
}

try {
  await run();
} catch (error) {
  // One line: the details of a driver's error may hold what its URL held.
  // A Ctrl-C ends the payers too, which is no news then.
  if (!isInterrupted) console.error(`soak: ${error.message}`);
  process.exitCode = 1;
}

async function run() {
  const { values } = parseArgs({ options });
  const seconds = numberOf("seconds", values.seconds);
  const seed = numberOf("seed", values.seed);
  const names = namesOf("engines", values.engines, engines);
  const modeNames = namesOf("modes", values.modes, modes);

  console.log(`soak: ${seconds} s, seed ${seed}`);
  const places = [];
  let isComplete = true;
  for (const name of names) {
    const { needs } = engines[name];
    const url = needs === undefined ? undefined : await serverUrl(needs);
    if (needs !== undefined && url === undefined) {
      console.log(`${name}: NOT RUN, no server (${needs})`);
      isComplete = false;
      continue;
    }
    const possible = modeNames.filter((mode) => mode === "lease" || !leaseOnly.has(name));
    places.push(...possible.map((mode) => ({ name, url, mode })));
  }
  // A soak of nothing proves nothing, and where everything has to run nothing may be left out.
  if (places.length === 0) throw new Error("no engine was run");
  if (!isComplete && isContinuousIntegration()) throw new Error("a server is missing, and CI is set");
  const loadSeconds = Math.max(2, seconds / places.length - overheadSeconds);
  for (const { name, url, mode } of places) {
    const { faults, summary } = await soak({ name, url, mode, seed, loadSeconds });
    const title = `${name}, ${mode}`;
    console.log(`${title}: ${summary}`);
    for (const fault of faults.slice(0, 20)) console.log(`${title}: VIOLATED: ${fault}`);
    if (faults.length > 20) console.log(`${title}: and ${faults.length - 20} more`);
    if (faults.length > 0) process.exitCode = 1;
  }
}

async function soak({ name, url, mode, seed, loadSeconds }) {
  const folder = mkdtempSync(path.join(tmpdir(), "soak-"));
  const random = createRandom(`load ${seed}`);
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const keyid = "soak-key";
  const publicKeyPem = publicKey.export({ type: "spki", format: "pem" });
  let platform;
  let inspection;
  let undone;
  const undo = () =>
    (undone ??= (async () => {
      await platform?.end();
      await inspection?.close();
      rmSync(folder, { recursive: true, force: true });
    })());
  undoCurrent = undo;
  try {
    const location = await engines[name].prepare({ folder, url, mode });
    inspection = engines[name].inspect(location);
    const configs = modes[mode].map((own) => ({ engine: name, mode: own, location, keyid, publicKeyPem }));
    platform = await startPlatform(configs, folder);
    const client = createClient({ platform, privateKey, keyid, random, inspection });
    const deadline = Date.now() + loadSeconds * 1_000;
    // Streams of their own: how fast the one is does not change what the other does.
    const [counts] = await Promise.all([
      unleash(platform, {
        count: configs.length,
        random: createRandom(`chaos ${seed}`),
        goesOn: () => Date.now() < deadline,
      }),
      load(client, random, deadline),
    ]);
    const startedAt = Date.now();
    const wedged = await settle(client);
    const settleMs = Date.now() - startedAt;
    const paidKeys = await inspection.paidKeys();
    const keys = client.allKeys();
    const passes = readPasses(folder);
    const faults = judge({ keys, paidKeys, wedged, answers: client.answers, passes });
    return { faults, summary: summarize({ keys, paidKeys, passes, client, counts, settleMs }) };
  } finally {
    await undo();
  }
}

function readPasses(folder) {
  return readdirSync(folder)
    .filter((file) => file.startsWith("passes-"))
    .flatMap((file) => readFileSync(path.join(folder, file), "utf8").split("\n"))
    .filter((line) => line !== "");
}

function summarize({ keys, paidKeys, passes, client, counts, settleMs }) {
  const { answers } = client;
  const statuses = [0, 200, 401, 409, 503].map((status) => {
    const count = answers.filter((answer) => answer.status === status).length;
    return `${count} ${status === 0 ? "unanswered" : `x ${status}`}`;
  });
  const runs = passes.filter((line) => /^(?:run|try) /.test(line)).map((line) => line.split(" ")[2]);
  const replays = answers.filter(({ kind }) => kind === "replay").length;
  return (
    `${keys.length} keys, ${paidKeys.length} payouts, ${answers.length} requests (${statuses.join(", ")}), ` +
    `${runs.length - new Set(runs).size} runs of a handler behind one that was lost, ` +
    `${replays} replays, ${counts.kills} kills, ${counts.stops} stops, settled in ${settleMs} ms`
  );
}

function namesOf(option, text, known) {
  const names = text.split(",");
  const unknown = names.find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return names;
  throw new Error(`--${option}: ${unknown} is none of ${Object.keys(known).join(", ")}`);
}

function numberOf(name, text) {
  const number = Number(text);
  if (text.trim() === "" || !Number.isSafeInteger(number) || number < 0)
    throw new Error(`--${name}: expected a whole number, got ${text}`);
  return number;
}
