// Verification in process (parse, base, key look-up, Ed25519, window, nonce) against the bare crypto.verify in it.
import { verify } from "node:crypto";
import {
  assertTimely,
  importVerificationKey,
  readSignature,
  verifySignature,
} from "@countersign/http-message-signatures";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { createSigner, keyid, path } from "./signer.mjs";
import { median } from "./statistics.mjs";

const rounds = 100;
const warmUpRounds = 10;
// Few at a time: what the benchmark itself keeps alive would be charged to the side that allocates.
const perRound = 200;

export function verificationRatio() {
  const signer = createSigner();
  const keys = new Map([[keyid, importVerificationKey(keyid, signer.publicKeyPem)]]);
  const nonces = memoryNonceStore({ max: 100_000 });
  const profile = {
    requiredComponents: ["@method", "@path", "content-type", "content-digest"],
    algorithms: ["ed25519"],
    windowSeconds: 60,
    clockSkewSeconds: 30,
  };
  const ratios = [];
  let fresh = 0;
  for (let round = 0; round < warmUpRounds + rounds; round++) {
    const signed = Array.from({ length: perRound }, () => signer.next());
    const messages = signed.map(({ headers }) => ({
      method: "POST",
      target: path,
      rawHeaders: [
        "Host",
        "127.0.0.1",
        "Connection",
        "keep-alive",
        ...Object.entries(headers).flat().map(asParsed),
        "Content-Length",
        "400",
      ],
    }));
    let bare = 0;
    let whole = 0;
    // Small alternating slices, so that both sides meet the same state of the machine.
    for (let start = 0; start < perRound; start += 50) {
      const t0 = performance.now();
      for (let i = start; i < start + 50; i++)
        verify(null, signed[i].base, signer.publicKey, signed[i].signature);
      const t1 = performance.now();
      for (let i = start; i < start + 50; i++) {
        const received = readSignature(messages[i], profile);
        assertTimely(received, profile, Date.now() / 1000);
        verifySignature(received, keys.get(received.keyid));
        const { nonce, expires } = received;
        const retainMs = expires * 1000 + 90_000 - Date.now();
        if (nonces.claim({ scope: keyid, nonce, token: nonce, retainMs }) === "fresh") fresh++;
      }
      const t2 = performance.now();
      bare += t1 - t0;
      whole += t2 - t1;
    }
    if (round >= warmUpRounds) ratios.push(whole / bare);
  }
  if (fresh !== (warmUpRounds + rounds) * perRound) throw new Error("a nonce was not fresh");
  return {
    name: "verification / bare crypto.verify",
    ratio: median(ratios),
    target: "<= 1.15",
    met: (r) => r <= 1.15,
  };
}

// A string put together from pieces is made whole at its first use; a parser's is whole from the start.
function asParsed(text) {
  return Buffer.from(text, "latin1").toString("latin1");
}
