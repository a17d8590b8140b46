// What a sink costs a payout: CPU time of the server's process, all threads, without a sink and with each of them, in alternating rounds.
import { payoutTraffic, startServer } from "./servers.mjs";
import { median } from "./statistics.mjs";

const starts = 3;
const warmUpRounds = 8;
const rounds = 5;
const perRound = 2000;

const kinds = {
  "no sink": "payout",
  log: "payoutLogged",
  prometheus: "payoutCounted",
  opentelemetry: "payoutTraced",
};

export async function sinkCosts() {
  const measured = [];
  for (let start = 0; start < starts; start++) measured.push(...(await measure(payoutTraffic())));
  return [
    `payout endpoint with sinks, CPU time a request in microseconds, medians of ${measured.length} rounds of ${perRound} requests`,
    line("", ["with it", "less no sink"]),
    ...Object.keys(kinds).map((name) =>
      line(name, [
        median(measured.map((round) => round[name])).toFixed(1),
        median(measured.map((round) => round[name] - round["no sink"])).toFixed(1),
      ]),
    ),
  ];
}

async function measure({ secrets, requests }) {
  const servers = await Promise.all(
    Object.entries(kinds).map(async ([name, kind]) => ({ name, server: await startServer(kind, secrets) })),
  );
  try {
    const found = [];
    for (let round = 0; round < warmUpRounds + rounds; round++) {
      const sent = requests(perRound);
      const costs = {};
      for (const { name, server } of round % 2 === 0 ? servers : servers.toReversed()) {
        costs[name] = await server.cpuOf(sent);
      }
      if (round >= warmUpRounds) found.push(costs);
    }
    return found;
  } finally {
    for (const { server } of servers) server.close();
  }
}

function line(label, cells) {
  return label.padEnd(15) + cells.map((cell) => cell.padStart(14)).join("");
}
