// An endpoint over HTTP against a bare route: throughput as a ratio, in short alternating rounds.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { sendAll, serializeRequest } from "./load.mjs";
import { createSigner, path as payoutPath } from "./signer.mjs";
import { median } from "./statistics.mjs";
import { createWebhookSender, path as webhookPath } from "./webhook-sender.mjs";

const rounds = 11;
const warmUpRounds = 2;
const perRound = 4000;
const connections = 64;

export function payoutHttpRatio() {
  const signer = createSigner();
  const { base, signature } = signer.next();
  const secrets = {
    publicKeyPem: signer.publicKeyPem,
    base: base.toString("base64"),
    signature: signature.toString("base64"),
  };
  return httpRatio({
    name: "payout endpoint over HTTP / bare route",
    kinds: ["barePayout", "payout"],
    secrets,
    path: payoutPath,
    next: signer.next,
  });
}

export function webhookHttpRatio() {
  const { secrets, next } = createWebhookSender();
  return httpRatio({
    name: "webhook endpoint over HTTP / bare route",
    kinds: ["bareWebhook", "webhook"],
    secrets,
    path: webhookPath,
    next,
  });
}

async function httpRatio({ name, kinds, secrets, path, next }) {
  const servers = await Promise.all(kinds.map((kind) => start(kind, secrets)));
  const load = ({ port }) =>
    sendAll(
      port,
      Array.from({ length: perRound }, () => serializeRequest(path, next())),
      connections,
    );
  try {
    const ratios = [];
    for (let round = 0; round < warmUpRounds + rounds; round++) {
      const [bare, guarded] = [await load(servers[0]), await load(servers[1])];
      if (round >= warmUpRounds) ratios.push(guarded / bare);
    }
    return { name, ratio: median(ratios), target: ">= 0.90", met: (r) => r >= 0.9 };
  } finally {
    for (const { child } of servers) child.disconnect();
  }
}

async function start(kind, secrets) {
  const child = fork(fileURLToPath(new URL("server.mjs", import.meta.url)), [kind], {
    env: { ...process.env, NODE_ENV: "test" },
  });
  child.send(secrets);
  const [{ port }] = await once(child, "message");
  return { child, port };
}
