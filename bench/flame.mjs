// node bench/flame.mjs FOLDER [--against /path/to/another/checkout]: flame graphs of the endpoints' servers under load, one SVG each,
// FOLDER/flame-payout.svg and flame-webhook.svg; of the other checkout's packages flame-payout-before.svg and so on.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { appsOf } from "./cpu.mjs";
import { drawFlames } from "./flame-svg.mjs";
import { payoutTraffic, startServer, webhookTraffic } from "./servers.mjs";
import { root } from "../scripts/setup.mjs";

const warmUp = 6000;
const profiled = 6000;

const { values, positionals } = parseArgs({
  options: { against: { type: "string" } },
  allowPositionals: true,
});
const [folder] = positionals;
if (folder === undefined) throw new Error("say in which folder the pictures go");
mkdirSync(folder, { recursive: true });

const traffics = { payout: payoutTraffic(), webhook: webhookTraffic() };
for (const [name, traffic] of Object.entries(traffics)) {
  await draw(name, traffic, root, "now");
  if (values.against !== undefined)
    await draw(`${name}-before`, traffic, path.resolve(values.against), "before");
}

async function draw(name, { kinds, secrets, requests }, checkout, when) {
  const server = await startServer(kinds.guarded, secrets, { file: appsOf(checkout) });
  try {
    await server.load(requests(warmUp));
    const profile = await server.profileOf(requests(profiled));
    const file = path.join(folder, `flame-${name}.svg`);
    const title = `${kinds.guarded} endpoint, ${when}: ${profiled} requests, memory stores, Node ${process.version}`;
    writeFileSync(file, drawFlames(profile, title));
    console.log(file);
  } finally {
    server.close();
  }
}
