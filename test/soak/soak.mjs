// node test/soak/soak.mjs [--seconds 20] [--seed n] [--engines sqlite,redis,postgres,mariadb] [--modes lease,transaction,both]
// Two processes on one store, or three where handlers get the transaction, are killed and stopped under payouts, duplicates and replays; at the end everything has to add up.
import { randomInt } from "node:crypto";
import process from "node:process";
import { parseArgs } from "node:util";
import { isContinuousIntegration } from "../support/servers/server-binaries.mjs";
import { unleash } from "./chaos.mjs";
import { engines } from "./engines.mjs";
import { newRound } from "./round.mjs";
import { serverUrl } from "./servers.mjs";

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
  const round = newRound({ engine: name, url, modes: modes[mode], seed });
  undoCurrent = round.close;
  try {
    await round.start();
    return await round.run(loadSeconds, (platform, given) => unleash(platform, given));
  } finally {
    await round.close();
  }
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
