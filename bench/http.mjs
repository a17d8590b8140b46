// The payout endpoint over HTTP against the bare route: throughput as a ratio, in short alternating rounds.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { sendAll, serializeRequest } from "./load.mjs";
import { createSigner, path } from "./signer.mjs";
import { median } from "./statistics.mjs";

const rounds = 11;
const warmUpRounds = 2;
const perRound = 4000;
const connections = 64;

export async function httpRatio() {
  const signer = createSigner();
  const servers = [await start("bare", signer), await start("payout", signer)];
  try {
    const ratios = [];
    for (let round = 0; round < warmUpRounds + rounds; round++) {
      const [bare, payout] = [await load(servers[0].port, signer), await load(servers[1].port, signer)];
      if (round >= warmUpRounds) ratios.push(payout / bare);
    }
    return {
      name: "payout endpoint over HTTP / bare route",
      ratio: median(ratios),
      target: ">= 0.90",
      met: (r) => r >= 0.9,
    };
  } finally {
    for (const { child } of servers) child.disconnect();
  }
}

async function start(kind, signer) {
  const child = fork(fileURLToPath(new URL("server.mjs", import.meta.url)), [kind], {
    env: { ...process.env, NODE_ENV: "test" },
  });
  const { base, signature } = signer.next();
  child.send({
    publicKeyPem: signer.publicKeyPem,
    base: base.toString("base64"),
    signature: signature.toString("base64"),
  });
  const [{ port }] = await once(child, "message");
  return { child, port };
}

async function load(port, signer) {
  const requests = Array.from({ length: perRound }, () => serializeRequest(path, signer.next()));
  return sendAll(port, requests, connections);
}
