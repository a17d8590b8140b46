// node test/soak/work/work-soak.mjs [--events 100000] [--outcomes 10000] [--rate 200] [--calm] [--seed n] [--engines sqlite,postgres,mariadb]
// Four processes on one database take webhooks in and work on them, and report outcomes, while they are killed and stopped; with --calm they are not.
import { randomInt } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createRandom } from "../../fuzz/random.mjs";
import { unleash } from "../chaos.mjs";
import { startPlatform } from "../platform.mjs";
import { serverUrl } from "../servers.mjs";
import { engines } from "./engines.mjs";
import { judge } from "./judge.mjs";
import { sendEvents, settlePayouts, startReceiver } from "./service.mjs";

const processes = 4;
const entities = 64;
const settleWithinMs = 300_000;

const { values } = parseArgs({
  options: {
    events: { type: "string", default: "100000" },
    outcomes: { type: "string", default: "10000" },
    rate: { type: "string", default: "200" },
    seed: { type: "string", default: String(randomInt(2 ** 32 - 1)) },
    calm: { type: "boolean", default: false },
    engines: { type: "string", default: Object.keys(engines).join(",") },
  },
});
const program = fileURLToPath(new URL("platform-process.mjs", import.meta.url));

let undoCurrent = async () => {};
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => void undoCurrent().finally(() => process.exit(1)));
}

console.log(`work soak: seed ${values.seed}`);
for (const name of values.engines.split(",")) {
  const { needs } = engines[name];
  const url = needs === undefined ? undefined : await serverUrl(needs);
  if (needs !== undefined && url === undefined) throw new Error(`${name}: no server (${needs})`);
  const { faults, summary } = await soak(name, url);
  console.log(`${name}: ${summary}`);
  for (const fault of faults.slice(0, 20)) console.log(`${name}: VIOLATED: ${fault}`);
  if (faults.length > 0) process.exitCode = 1;
}

async function soak(name, url) {
  const folder = mkdtempSync(path.join(tmpdir(), "work-soak-"));
  const random = createRandom(`load ${values.seed}`);
  const receiver = await startReceiver(createRandom(`receiver ${values.seed}`));
  let platform;
  let inspection;
  let undone;
  undoCurrent = () =>
    (undone ??= (async () => {
      await platform?.end();
      receiver.close();
      await inspection?.close();
      rmSync(folder, { recursive: true, force: true });
    })());
  try {
    const location = await engines[name].prepare({ folder, url });
    inspection = await engines[name].inspect(location);
    const config = { engine: name, location, receiverUrl: receiver.url };
    platform = await startPlatform(
      Array.from({ length: processes }, () => config),
      folder,
      program,
    );
    const events = Number(values.events);
    let goesOn = true;
    const chaos = createRandom(`chaos ${values.seed}`);
    const unleashed = values.calm
      ? { kills: 0, stops: 0 }
      : unleash(platform, { count: processes, random: chaos, goesOn: () => goesOn });
    const load = { platform, random };
    const [sent, rolledBack] = await Promise.all([
      sendEvents({ ...load, events, entities, aSecond: Number(values.rate) }),
      settlePayouts({ ...load, count: Number(values.outcomes) }),
    ]);
    goesOn = false;
    const counts = await unleashed;
    const startedAtMs = performance.now();
    const left = await allEnded(inspection.work);
    const settledMs = Math.round(performance.now() - startedAtMs);
    const dead = left.reduce((sum, queue) => sum + queue.dead, 0);
    const [applied, settled] = [await inspection.applied(), await inspection.settled()];
    const faults = judge({ events, applied, settled, rolledBack, received: receiver.received, dead });
    return { faults, summary: summarize({ sent, applied, settled, receiver, counts, settledMs }) };
  } finally {
    await undoCurrent();
  }
}

/** The queues when nothing is open any more, or when that took too long. */
async function allEnded(work) {
  const endsAtMs = performance.now() + settleWithinMs;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- polling
    const queues = await work.summaries();
    if (queues.every(({ open }) => open === 0) || performance.now() > endsAtMs) return queues;
    // oxlint-disable-next-line no-await-in-loop -- as above
    await delay(200);
  }
}

function summarize({ sent, applied, settled, receiver, counts, settledMs }) {
  const tookMs = sent.tookMs.toSorted((one, other) => one - other);
  const [half, most, longest] = [0.5, 0.99, 1].map((share) =>
    Math.round(tookMs[Math.ceil(tookMs.length * share) - 1]),
  );
  const twice = [...receiver.received.values()].filter((count) => count > 1).length;
  return (
    `${applied.length} events in ${sent.webhooks} webhooks (${Math.round(sent.webhooks / sent.seconds)} a second), ` +
    `acknowledged in ${half} ms (half), ${most} ms (99 %), ${longest} ms (longest), ` +
    `${settled.length} payouts settled, ${receiver.received.size} outcomes received, ${twice} of them more than once, ` +
    `${counts.kills} kills, ${counts.stops} stops, all worked on ${settledMs} ms later`
  );
}
