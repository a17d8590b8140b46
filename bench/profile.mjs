// node bench/profile.mjs FOLDER [--against /path/to/another/checkout]: CPU profiles of the endpoints' servers under load, as --cpu-prof
// writes them: payout.cpuprofile and webhook.cpuprofile; of the other checkout's packages payout-before.cpuprofile and so on.
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

const traffics = { payout: payoutTraffic(), webhook: webhookTraffic() };
for (const [name, traffic] of Object.entries(traffics)) {
  await record(name, traffic, root);
  if (values.against !== undefined) await record(`${name}-before`, traffic, path.resolve(values.against));
}

async function record(name, { kinds, secrets, requests }, checkout) {
  const server = await startServer(kinds.guarded, secrets, { file: appsOf(checkout) });
  try {
    await server.load(requests(warmUp));
    const file = path.join(folder, `${name}.cpuprofile`);
    writeFileSync(file, JSON.stringify(await server.profileOf(requests(profiled))));
    console.log(file);
  } finally {
    server.close();
  }
}
