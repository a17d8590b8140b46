// The apps that are compared: an endpoint, and a bare route with the same unavoidable work.
import { createHash, createHmac, createPublicKey, verify } from "node:crypto";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency-guard";
import { payoutEndpoint } from "@countersign/payout";
import { createWebhookHandler, webhookEndpoint } from "@countersign/webhooks";
import express from "express";
import { keyid, path as payoutPath } from "./signer.mjs";
import { path as webhookPath } from "./webhook-sender.mjs";

export const apps = { payout, barePayout, webhook, bareWebhook };

export function payout({ publicKeyPem }) {
  const app = newApp();
  const endpoint = payoutEndpoint({
    keys: { [keyid]: publicKeyPem },
    nonces: memoryNonceStore(),
    allowIps: ["127.0.0.1"],
    store: memoryIdempotencyStore(),
    findBusiness: () => true,
    referenceField: "reference",
  });
  app.post(payoutPath, endpoint, (_req, res) => void res.json({ status: "acknowledged" }));
  return app;
}

/** Reads the body, one SHA-256, one Ed25519 verification over a signature base of the usual length. */
export function barePayout({ publicKeyPem, base, signature }) {
  const app = newApp();
  const publicKey = createPublicKey(publicKeyPem);
  const sample = { base: Buffer.from(base, "base64"), signature: Buffer.from(signature, "base64") };
  app.post(payoutPath, express.raw({ type: () => true }), (req, res) => {
    const digest = createHash("sha256").update(req.body).digest("base64");
    if (digest.length !== 44 || !verify(null, sample.base, publicKey, sample.signature)) {
      throw new Error("not verified");
    }
    res.json({ status: "acknowledged" });
  });
  return app;
}

function webhook({ username, password, secret }) {
  const app = newApp();
  let handled = 0;
  const handler = createWebhookHandler({
    store: memoryIdempotencyStore({ retentionMs: 3 * 86_400_000 }),
    fallback: "ignore",
  });
  handler.on("buyer.status_changed", () => void handled++);
  const endpoint = webhookEndpoint({
    credentials: [{ username, password }],
    secrets: [secret],
    https: { dangerouslyAllowHttp: true },
    handler,
  });
  app.use(webhookPath, endpoint);
  return app;
}

/** Reads the body, computes one HMAC and answers as the endpoint does: an empty 200, without Express's send. */
function bareWebhook({ secret }) {
  const app = newApp();
  app.post(webhookPath, express.raw({ type: () => true }), (req, res) => {
    const signature = createHmac("sha256", secret).update(req.body).digest("base64");
    if (signature !== req.headers["x-payload-signature"]) throw new Error("not verified");
    res.status(200).end();
  });
  return app;
}

function newApp() {
  return express().disable("x-powered-by").disable("etag");
}
