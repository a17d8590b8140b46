// node test/clusters/run.mjs galera|group-single|group-multi|postgres SECONDS [--seed n]
// Three nodes of a database on loopback, and the soak's platform on all of them: sessions are ended all the time, nodes are killed and come
// back. At the end everything has to add up, as in the soak, on each node.
import { randomInt } from "node:crypto";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createRandom } from "../fuzz/random.mjs";
import { databases } from "../soak/databases.mjs";
import { newRound } from "../soak/round.mjs";
import { reportMissing } from "../support/servers/server-binaries.mjs";
import { startGalera } from "./galera.mjs";
import { startGroup } from "./group.mjs";
import { startPostgres } from "./postgres.mjs";
import { startRouter } from "./router.mjs";

const clusters = {
  galera: { start: startGalera, needs: "MariaDB with Galera and rsync" },
  "group-single": { start: () => startGroup({ isMultiPrimary: false }), needs: "MySQL" },
  "group-multi": { start: () => startGroup({ isMultiPrimary: true }), needs: "MySQL" },
  postgres: { start: startPostgres, needs: "PostgreSQL" },
};

const modes = ["transaction", "lease", "transaction", "lease"];
const usualSeconds = 60;
const leastKeys = 20;
// What a node has to bear before the next kill, and how long it is away.
const calmMs = 4_000;
const awayMs = 5_000;
// A failover lasts up to ten seconds.
const patienceMs = 60_000;
const answerMs = 5_000;

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: "string", default: String(randomInt(2 ** 32 - 1)) } },
});
const [kind, seconds = String(usualSeconds)] = positionals;
if (!Object.hasOwn(clusters, kind) || !(Number(seconds) > 0))
  throw new Error(`usage: node test/clusters/run.mjs ${Object.keys(clusters).join("|")} SECONDS [--seed n]`);

const undos = [];
let undoing;
const undo = () =>
  (undoing ??= (async () => {
    for (const step of undos.splice(0).toReversed()) await step();
  })());
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => void undo().finally(() => process.exit(1)));
}

try {
  await run();
} finally {
  await undo();
}

async function run() {
  const { start, needs } = clusters[kind];
  const startedAt = Date.now();
  const cluster = await start();
  if (cluster === undefined) {
    reportMissing(needs, `test/clusters/run.mjs ${kind} has not run.`);
    return;
  }
  undos.push(cluster.close);
  const { engine, nodes, reads } = cluster;
  console.log(
    `${kind}: ${seconds} s, seed ${values.seed}, ${nodes.length} nodes up in ${Date.now() - startedAt} ms`,
  );
  const writable = watch(cluster);
  undos.push(writable.stop);
  const random = createRandom(`route ${values.seed}`);
  const router = await startRouter(() => {
    const ports = writable.ports();
    return ports.length === 0 ? undefined : random.pick(ports);
  });
  undos.push(router.close);
  await until(() => writable.ports().length > 0);
  const url = nodes[0].url.replace(/:\d+\//, `:${router.port}/`);
  const inspected = (inspection) => patient(inspection);
  const round = newRound({ engine, url, modes, seed: values.seed, inspected, reads });
  undos.push(round.close);
  const location = await round.start();
  const { faults, keys, summary } = await round.run(Number(seconds), (_platform, given) =>
    disturb({ cluster, writable, router }, given),
  );
  const all = [...faults, ...(await compare(cluster, location, keys))];
  // A run in which nothing happened proves nothing.
  if (keys.length < leastKeys)
    all.push(`there were ${keys.length} keys, and no fewer than ${leastKeys} count`);
  console.log(`${kind}: ${summary}`);
  for (const fault of all.slice(0, 20)) console.log(`${kind}: VIOLATED: ${fault}`);
  if (all.length > 20) console.log(`${kind}: and ${all.length - 20} more`);
  if (all.length > 0) process.exitCode = 1;
}

/** Which nodes take writes, asked all the time. */
function watch({ nodes, takesWrites }) {
  let ports = [];
  const stopped = new AbortController();
  const watching = (async () => {
    while (!stopped.signal.aborted) {
      const takes = await Promise.all(nodes.map((node) => node.isRunning && takesWrites(node)));
      ports = nodes.filter((_node, index) => takes[index]).map(({ port }) => port);
      await delay(100);
    }
  })();
  return {
    ports: () => ports,
    async stop() {
      stopped.abort();
      await watching;
    },
  };
}

/** Ends sessions all the time; kills a node, and starts it again, in turn while `goesOn()`, and once at least. Resolves when all run. */
async function disturb({ cluster, writable, router }, { random, goesOn }) {
  const counts = { "nodes killed": 0, "sessions ended": 0 };
  const calm = new AbortController();
  const endSessions = async () => {
    while (!calm.signal.aborted) {
      await delay(120 + random.below(200));
      const node = random.pick(cluster.nodes.filter(({ isRunning }) => isRunning));
      if (cluster.cutsLines ? router.cut(random) : await node.killSession(random))
        counts["sessions ended"] += 1;
    }
  };
  const killNodes = async () => {
    do {
      await delay(calmMs);
      const node = random.pick(await cluster.victims());
      const killedAt = Date.now();
      await cluster.kill(node);
      counts["nodes killed"] += 1;
      await until(() => writable.ports().some((port) => port !== node.port));
      await delay(Math.max(0, awayMs - (Date.now() - killedAt)));
      const startedAt = Date.now();
      if (!(await cluster.start(node))) throw new Error(`${node.name} did not come back`);
      console.log(`${node.name} killed, back in ${Date.now() - startedAt} ms`);
    } while (goesOn());
    calm.abort();
  };
  await Promise.all([endSessions(), killNodes()]);
  return counts;
}

/** What a failover refuses is asked again. */
function patient(inspection) {
  const asked =
    (ask) =>
    async (...given) => {
      for (const end = Date.now() + patienceMs; ;) {
        try {
          return await inTime(ask(...given));
        } catch (error) {
          if (Date.now() > end) throw error;
          await delay(100);
        }
      }
    };
  return {
    isPaid: asked(inspection.isPaid),
    paidKeys: asked(inspection.paidKeys),
    // The tables go with the nodes, of which none may take writes any more.
    close: () => inspection.close().catch(() => {}),
  };
}

function inTime(answer) {
  const late = delay(answerMs, undefined, { ref: false }).then(() => {
    throw new Error("no answer in time");
  });
  return Promise.race([answer, late]);
}

/** What is wrong on a node: a key without its one payout, or rows that the first one does not have. */
async function compare({ engine, nodes }, location, keys) {
  const looks = [];
  for (const node of nodes) {
    const opened = await databases[engine].open({ ...location, url: node.url, session: undefined }, 1);
    undos.push(opened.close);
    looks.push(async () => ({
      paid: (await opened.read("payouts")).map((row) => row.idempotency_key),
      rows: JSON.stringify([
        await opened.read("payouts", "ORDER BY place"),
        await opened.read(opened.keys, "ORDER BY 1"),
      ]),
    }));
  }
  // A node may still apply what the others have.
  let found = [];
  for (const end = Date.now() + patienceMs; Date.now() < end; await delay(200)) {
    found = await Promise.all(looks.map((look) => look()));
    if (found.every(({ rows }) => rows === found[0].rows)) break;
  }
  const sorted = JSON.stringify(keys.toSorted());
  return nodes.flatMap(({ name }, index) => [
    ...(found[index].rows === found[0].rows ? [] : [`${name} has other rows than ${nodes[0].name}`]),
    ...(JSON.stringify(found[index].paid.toSorted()) === sorted
      ? []
      : [`${name} has not each key's one payout`]),
  ]);
}

async function until(check) {
  for (const end = Date.now() + patienceMs; !(await check()); await delay(50)) {
    if (Date.now() > end) throw new Error("no node takes writes");
  }
}
