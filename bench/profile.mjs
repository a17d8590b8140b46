// node bench/profile.mjs FOLDER [--against /path/to/another/checkout]: CPU profiles of the endpoints' servers under load, as --cpu-prof
// writes them: payout.cpuprofile, payoutChain.cpuprofile (the same checks mounted one by one) and webhook.cpuprofile; of the other checkout's packages payout-before.cpuprofile and so on.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { appsOf } from "./cpu.mjs";
import { payoutTraffic, startServer, webhookTraffic } from "./servers.mjs";
import { root } from "../scripts/setup.mjs";

const warmUp = 6000;
const profiled = 6000;

const { values, positionals } = parseArgs({
  options: { against: { type: "string" } },
  allowPositionals: true,
});
const [folder] = positionals;
if (folder === undefined) throw new Error("say in which folder the profiles go");
mkdirSync(folder, { recursive: true });

const payouts = payoutTraffic();
await recordBoth("payout", payouts, payouts.kinds.guarded);
await recordBoth("payoutChain", payouts, payouts.kinds.chain);
const webhooks = webhookTraffic();
await recordBoth("webhook", webhooks, webhooks.kinds.guarded);

async function recordBoth(name, traffic, kind) {
  await record(name, { traffic, kind, checkout: root });
  if (values.against === undefined) return;
  await record(`${name}-before`, { traffic, kind, checkout: path.resolve(values.against) });
}

async function record(name, { traffic: { secrets, requests }, kind, checkout }) {
  const server = await startServer(kind, secrets, { file: appsOf(checkout) });
  try {
    await server.load(requests(warmUp));
    const file = path.join(folder, `${name}.cpuprofile`);
    writeFileSync(file, JSON.stringify(await server.profileOf(requests(profiled))));
    console.log(file);
  } finally {
    server.close();
  }
}
