// Other packages from the registry beside ours, in one run: microseconds of CPU for one verification or one request, in alternating
// slices. Each peer does what its documentation shows for the same input.
import { createHmac, randomUUID, verify as cryptoVerify } from "node:crypto";
import { verify as verifyOctokit } from "@octokit/webhooks-methods";
import {
  assertTimely,
  importVerificationKey,
  readSignature,
  verifySignature,
} from "@countersign/http-message-signatures";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { webhookBasicAuth } from "@countersign/webhook-basic-auth";
import { payloadVerifier } from "@countersign/webhook-hmac";
import express from "express";
import basicAuth from "express-basic-auth";
import { idempotency } from "express-idempotency";
import ipfilter from "express-ipfilter";
import * as messageSig from "http-message-sig";
import { httpbis } from "http-message-signatures";
import inject from "light-my-request";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Stripe } from "stripe";
import { Webhook as SvixWebhook } from "svix";
import { createSigner, keyid, path } from "./signer.mjs";
import { median } from "./statistics.mjs";

const slices = 60;
const warmUpSlices = 15;
const perSlice = 50;

export async function signaturePeers() {
  const signer = createSigner();
  const { publicKey } = signer;
  const key = importVerificationKey(keyid, signer.publicKeyPem);
  const components = ["@method", "@path", "content-type", "content-digest"];
  const profile = {
    requiredComponents: components,
    algorithms: ["ed25519"],
    windowSeconds: 60,
    clockSkewSeconds: 30,
  };
  const ours =
    (engine) =>
    ({ rawHeaders }) => {
      const received = readSignature({ method: "POST", target: path, rawHeaders }, profile);
      assertTimely(received, profile, Date.now() / 1000);
      verifySignature(received, key, engine);
    };
  const checked = (data, signature) => cryptoVerify(null, data, publicKey, signature);
  const httpbisConfig = {
    keyLookup: async () => ({
      id: keyid,
      algs: ["ed25519"],
      verify: async (data, bytes) => checked(data, bytes),
    }),
    requiredFields: components,
    requiredParams: ["created", "expires", "keyid", "nonce"],
  };
  const sigPolicy = {
    algorithms: ["ed25519"],
    requiredComponents: components,
    requiredParameters: ["created", "expires", "keyid", "nonce"],
  };
  const verifier = { algorithm: "ed25519", verify: checked };
  const input = () => {
    const { headers, base, signature } = signer.next();
    const lines = Object.entries({ host: "127.0.0.1", ...headers });
    const rawHeaders = lines.flat().map((text) => Buffer.from(text, "latin1").toString("latin1"));
    const fields = lines.map(([name, value]) => ({ name, value }));
    return { base, signature, rawHeaders, fields, headers: Object.fromEntries(lines) };
  };
  return compare("one signed payout, synchronous", "crypto.verify", input, {
    "crypto.verify": ({ base, signature }) => assert(cryptoVerify(null, base, publicKey, signature)),
    "ours, native": ours("native"),
    "ours, sodium": ours("sodium"),
    "http-message-signatures": async ({ headers }) =>
      assert(
        await httpbis.verifyMessage(httpbisConfig, {
          method: "POST",
          url: `https://127.0.0.1${path}`,
          headers,
        }),
      ),
    "http-message-sig": ({ fields }) =>
      messageSig.verifySignature(
        { kind: "request", method: "POST", targetUri: `https://127.0.0.1${path}`, fields },
        { policy: sigPolicy, resolveVerifier: () => verifier },
      ),
  });
}

export async function webhookPeers() {
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const key = Buffer.from(secret.slice(6), "base64");
  const standard = new StandardWebhook(secret);
  const svix = new SvixWebhook(secret);
  const verifyPayload = payloadVerifier({ secrets: [secret] });
  const hmac = (text, encoding, by = key) => createHmac("sha256", by).update(text).digest(encoding);
  const input = () => {
    const body = JSON.stringify({ type: "buyer.status_changed", id: randomUUID(), note: "x".repeat(200) });
    const [id, seconds] = [`msg_${randomUUID()}`, Math.floor(Date.now() / 1000)];
    const signature = `v1,${hmac(`${id}.${seconds}.${body}`, "base64")}`;
    const [bytes, plain] = [Buffer.from(body), hmac(body, "base64", secret)];
    return {
      body,
      bytes,
      plain,
      request: { rawHeaders: ["X-Payload-Signature", plain], body: async () => bytes },
      octokit: `sha256=${hmac(body, "hex", secret)}`,
      stripe: `t=${seconds},v1=${hmac(`${seconds}.${body}`, "hex", secret)}`,
      standard: { "webhook-id": id, "webhook-timestamp": String(seconds), "webhook-signature": signature },
      svix: { "svix-id": id, "svix-timestamp": String(seconds), "svix-signature": signature },
    };
  };
  return compare("the HMAC of a webhook of 300 bytes", "createHmac", input, {
    createHmac: ({ bytes, plain }) =>
      assert(createHmac("sha256", secret).update(bytes).digest("base64") === plain),
    "ours, payloadVerifier": ({ request }) => verifyPayload(request),
    standardwebhooks: (made) => standard.verify(made.body, made.standard),
    svix: (made) => svix.verify(made.body, made.svix),
    stripe: (made) => Stripe.webhooks.constructEvent(made.body, made.stripe, secret),
    "@octokit/webhooks-methods": async (made) => assert(await verifyOctokit(secret, made.body, made.octokit)),
  });
}

export async function middlewarePeers() {
  const credentials = { username: "service", password: "a-long-password" };
  const users = { service: credentials.password };
  const authorization = `Basic ${Buffer.from("service:a-long-password").toString("base64")}`;
  const addresses = ["127.0.0.1", "192.0.2.0/24"];
  const guardOptions = {
    store: memoryIdempotencyStore({ max: 1_000_000 }),
    key: (req) => req.headers["idempotency-key"],
    fingerprint: () => "same",
  };
  const sides = {
    "no middleware": (_req, _res, next) => next(),
    "ours, ipAllowlist": ipAllowlist({ allow: addresses }),
    "express-ipfilter": ipfilter.IpFilter(addresses, { mode: "allow", log: false }),
    "ours, webhookBasicAuth": webhookBasicAuth(credentials),
    "express-basic-auth": basicAuth({ users }),
    "ours, idempotencyGuard": idempotencyGuard(guardOptions),
    "express-idempotency": idempotency({}),
  };
  const input = () => ({ authorization, "idempotency-key": randomUUID() });
  const asked = Object.entries(sides).map(([name, middleware]) => {
    const app = express().disable("x-powered-by").disable("etag");
    app.post("/", middleware, (_req, res) => void res.json({ ok: true }));
    const request = { method: "POST", url: "/", remoteAddress: "127.0.0.1" };
    const ask = async (headers) => assert((await inject(app, { ...request, headers })).statusCode === 200);
    return [name, ask];
  });
  return compare(
    "a request through one middleware, in process",
    "no middleware",
    input,
    Object.fromEntries(asked),
  );
}

/** A line for each side: microseconds, and its ratio to `first` in the same slice. Throws when a side refuses what is sound. */
async function compare(title, first, input, sides) {
  const found = Object.fromEntries(Object.keys(sides).map((name) => [name, []]));
  for (let slice = 0; slice < warmUpSlices + slices; slice++) {
    const inputs = Array.from({ length: perSlice }, input);
    const inOrder = Object.entries(sides);
    if (slice % 2 === 1) inOrder.reverse();
    for (const [name, side] of inOrder) {
      const before = process.cpuUsage();
      // oxlint-disable-next-line no-await-in-loop -- one after the other is what is measured
      for (const each of inputs) await side(each);
      const { user, system } = process.cpuUsage(before);
      if (slice >= warmUpSlices) found[name].push((user + system) / perSlice);
    }
  }
  return [
    title,
    ...Object.entries(found).map(([name, micros]) => {
      const ratio = median(micros.map((each, slice) => each / found[first][slice]));
      return `  ${name.padEnd(28)} ${median(micros).toFixed(1).padStart(8)} us   ${ratio.toFixed(2)} x`;
    }),
  ];
}

function assert(isSound) {
  if (!isSound) throw new Error("a peer refused what is sound");
}
