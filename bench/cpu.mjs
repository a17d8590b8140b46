// CPU time that a request costs the server's process, all threads, user and system: an endpoint against its bare route, with stores
// that answer at once and by a promise, and the same checks mounted one by one; with --against also the packages of another checkout, in the same rounds.
import { spawnSync } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { root } from "../scripts/setup.mjs";
import { payoutTraffic, startServer, webhookTraffic } from "./servers.mjs";
import { median } from "./statistics.mjs";

// Each start is new processes: what the compiler makes of the same code, and where it lies, differs from one process to the next.
const starts = 3;
// The compiler is done with an endpoint after some ten thousand requests; until then a round tells what compiling costs.
const warmUpRounds = 8;
const rounds = 5;
const perRound = 2000;

const endpointColumns = {
  bare: ({ bare }) => bare,
  memory: ({ memory }) => memory,
  "memory - bare": ({ memory, bare }) => memory - bare,
  promises: ({ promises }) => promises,
  "promises - bare": ({ promises, bare }) => promises - bare,
  "promises - memory": ({ promises, memory }) => promises - memory,
};

const chainColumns = {
  chain: ({ chain }) => chain,
  "chain - memory": ({ chain, memory }) => chain - memory,
  "chain / memory": ({ chain, memory }) => chain / memory,
};

/** Of an endpoint whose checks can be mounted one by one too. */
function columnsOf({ kinds }) {
  return kinds.chain === undefined ? endpointColumns : { ...endpointColumns, ...chainColumns };
}

export function payoutCpu({ against }) {
  return cpu("payout endpoint", payoutTraffic(), against);
}

export function webhookCpu({ against }) {
  return cpu("webhook endpoint", webhookTraffic(), against);
}

async function cpu(name, traffic, against) {
  const folders = against === undefined ? { this: root } : { this: root, other: against };
  const checkouts = Object.entries(folders).map(([label, folder]) => ({
    label,
    folder,
    file: appsOf(folder),
  }));
  const columns = columnsOf(traffic);
  const measured = [];
  for (let start = 0; start < starts; start++) measured.push(...(await measure(traffic, checkouts)));
  return [
    `${name}, CPU time a request in microseconds, medians of ${measured.length} rounds of ${perRound} requests`,
    ...(against === undefined ? [] : checkouts.map(described)),
    line("", columns, Object.keys(columns)),
    ...checkouts.map(({ label }) =>
      row(label, columns, { measured, valueOf: (round, column) => column(round[label]) }),
    ),
    ...(against === undefined
      ? []
      : [
          row("this - other", columns, {
            measured,
            valueOf: (round, column) => column(round.this) - column(round.other),
          }),
        ]),
  ];
}

/** What each round found: by checkout, the microseconds of the bare route, of the endpoint with either stores, and of the single checks. */
async function measure({ kinds, secrets, requests }, checkouts) {
  const start = async (label, side, kind, apps) => {
    const server = await startServer(kind, secrets, apps);
    return { label, side, server };
  };
  const sides = await Promise.all(
    checkouts.flatMap(({ label, file }) => [
      start(label, "bare", kinds.bare, { file }),
      start(label, "memory", kinds.guarded, { file, stores: "memory" }),
      start(label, "promises", kinds.guarded, { file, stores: "promises" }),
      ...(kinds.chain === undefined ? [] : [start(label, "chain", kinds.chain, { file, stores: "memory" })]),
    ]),
  );
  try {
    const found = [];
    for (let round = 0; round < warmUpRounds + rounds; round++) {
      // The same ones for all: no server knows what another one has seen.
      const sent = requests(perRound);
      const costs = Object.fromEntries(checkouts.map(({ label }) => [label, {}]));
      for (const { label, side, server } of round % 2 === 0 ? sides : sides.toReversed()) {
        costs[label][side] = await server.cpuOf(sent);
      }
      if (round >= warmUpRounds) found.push(costs);
    }
    return found;
  } finally {
    for (const { server } of sides) server.close();
  }
}

/** The apps.mjs of a checkout: it builds the apps with that checkout's options and packages. */
export function appsOf(folder) {
  const file = path.join(folder, "bench", "apps.mjs");
  if (!existsSync(file)) throw new Error(`${folder} is no checkout: it has no bench/apps.mjs`);
  for (const name of ["@countersign/core", "@countersign/http-signature-verify"]) {
    // Found in a folder above, as in a worktree without node_modules, or by a link, a checkout would be compared with itself.
    if (!resolvedFrom(file, name).startsWith(realpathSync(folder) + path.sep)) {
      throw new Error(`${name} of ${folder} is not its own, or not there: npm ci && npm run build in it`);
    }
  }
  return file;
}

function resolvedFrom(file, name) {
  try {
    return createRequire(file).resolve(name);
  } catch {
    return "";
  }
}

function described({ label, folder }) {
  const { stdout } = spawnSync("git", ["-C", folder, "describe", "--always", "--dirty"], {
    encoding: "utf8",
  });
  return `${label.padEnd(13)}${folder}, ${stdout?.trim() || "not in git"}`;
}

function row(label, columns, { measured, valueOf }) {
  const values = Object.values(columns).map((column) =>
    median(measured.map((round) => valueOf(round, column))),
  );
  return line(
    label,
    columns,
    values.map((value) => value.toFixed(Math.abs(value) < 10 ? 3 : 1)),
  );
}

function line(label, columns, cells) {
  const widths = Object.keys(columns).map((name) => Math.max(9, name.length + 2));
  return label.padEnd(13) + cells.map((cell, at) => cell.padStart(widths[at])).join("");
}
