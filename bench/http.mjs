// An endpoint over HTTP against a bare route: throughput as a ratio, in short alternating rounds.
import { payoutTraffic, startServer, webhookTraffic } from "./servers.mjs";
import { median } from "./statistics.mjs";

const rounds = 11;
const warmUpRounds = 2;
const perRound = 4000;

export function payoutHttpRatio() {
  return httpRatio("payout endpoint over HTTP / bare route", payoutTraffic());
}

export function webhookHttpRatio() {
  return httpRatio("webhook endpoint over HTTP / bare route", webhookTraffic());
}

async function httpRatio(name, { kinds, secrets, requests }) {
  const servers = await Promise.all([kinds.bare, kinds.guarded].map((kind) => startServer(kind, secrets)));
  const load = (server) => server.load(requests(perRound));
  try {
    const ratios = [];
    for (let round = 0; round < warmUpRounds + rounds; round++) {
      const [bare, guarded] = [await load(servers[0]), await load(servers[1])];
      if (round >= warmUpRounds) ratios.push(guarded / bare);
    }
    return { name, ratio: median(ratios), target: ">= 0.90", met: (r) => r >= 0.9 };
  } finally {
    for (const server of servers) server.close();
  }
}
