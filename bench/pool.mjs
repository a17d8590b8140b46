// Where Ed25519 runs: requests per second of the payout endpoint, CPU time, and how long an unrelated route of the same app takes
// while payouts come at 70 % of what the server can do; by engine, on one core and on two.
import { spawnSync } from "node:child_process";
import { unrelatedPath } from "./apps.mjs";
import { percentile } from "./latency.mjs";
import { probe, sendPaced } from "./load.mjs";
import { payoutTraffic, startServer } from "./servers.mjs";
import { median } from "./statistics.mjs";

const sides = {
  "native, loop": { kind: "payoutLoop", perRound: 3000 },
  "native, pool": { kind: "payout", perRound: 3000 },
  "sodium, loop": { kind: "payoutSodium", perRound: 3000 },
  // Ten times slower, and a round takes as long.
  "noble, loop": { kind: "payoutNoble", perRound: 600 },
};
const coresOf = { "1 core": "0", "2 cores": "0,1" };
const rounds = 5;
const load = 0.7;

/** Undefined without taskset. */
export async function enginesOnCores() {
  if (spawnSync("taskset", ["-V"]).status !== 0) return undefined;
  const results = [];
  for (const [cores, list] of Object.entries(coresOf)) {
    // oxlint-disable-next-line no-await-in-loop -- nothing beside what is measured
    results.push(...(await measure(cores, list)));
  }
  return results;
}

async function measure(cores, list) {
  const { secrets, requests } = payoutTraffic();
  const servers = [];
  for (const [name, { kind, perRound }] of Object.entries(sides)) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    servers.push({ name, perRound, found: [], server: await startServer(kind, secrets, { cores: list }) });
  }
  try {
    for (let round = -1; round < rounds; round++) {
      const inOrder = round % 2 === 0 ? servers : servers.toReversed();
      for (const { found, server, perRound } of inOrder) {
        // oxlint-disable-next-line no-await-in-loop -- see above
        const one = await measureOnce(server, () => requests(perRound));
        if (round >= 0) found.push(one);
      }
    }
  } finally {
    for (const { server } of servers) server.close();
  }
  return servers.map(({ name, found }) => {
    const of = (member) => median(found.map((each) => each[member]));
    const [perSecond, cpu] = [of("perSecond").toFixed(0), of("cpu").toFixed(0)];
    const [p50, p99] = [of("p50").toFixed(2), of("p99").toFixed(2)];
    return `${cores}, ${name.padEnd(13)} ${perSecond.padStart(6)} payouts/s ${cpu.padStart(4)} us CPU; unrelated route at 70 %: p50 ${p50} ms, p99 ${p99} ms`;
  });
}

async function measureOnce(server, newRequests) {
  const perSecond = await server.load(newRequests());
  const sent = newRequests();
  const cpu = await server.cpuOf(newRequests());
  const paced = sendPaced(server.port, sent, perSecond * load);
  const took = await probe(server.port, unrelatedPath, paced);
  await paced;
  return { perSecond, cpu, p50: percentile(took, 0.5), p99: percentile(took, 0.99) };
}
