// One payout's whole chain in process, without a socket, against the bare route; requests per second as a ratio.
import inject from "light-my-request";
import { barePayout, payout as payoutApp } from "./apps.mjs";
import { createSigner, path } from "./signer.mjs";
import { median } from "./statistics.mjs";

const rounds = 7;
const perRound = 1000;

export async function chainRatio() {
  const signer = createSigner();
  const { publicKeyPem } = signer;
  const { base, signature } = signer.next();
  const sample = { base: base.toString("base64"), signature: signature.toString("base64") };
  const bare = barePayout({ publicKeyPem, ...sample });
  const payout = payoutApp({ publicKeyPem });
  const ratios = [];
  for (let round = 0; round < rounds + 2; round++) {
    const requests = Array.from({ length: 2 * perRound }, () => signer.next());
    const bareMs = await timed(bare, requests.slice(0, perRound));
    const payoutMs = await timed(payout, requests.slice(perRound));
    if (round >= 2) ratios.push(bareMs / payoutMs);
  }
  return {
    name: "whole chain in process / bare route",
    ratio: median(ratios),
    target: "reported",
    met: () => true,
  };
}

async function timed(app, requests) {
  const startedAt = performance.now();
  for (const { headers, body } of requests) {
    const answer = await inject(app, {
      method: "POST",
      url: path,
      headers,
      payload: body,
      remoteAddress: "127.0.0.1",
    });
    if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}: ${answer.payload}`);
  }
  return performance.now() - startedAt;
}
