// The two apps that are compared: a payout endpoint, and a bare route with the same unavoidable work.
import { createHash, verify } from "node:crypto";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency-guard";
import { payoutEndpoint } from "@countersign/payout";
import express from "express";
import { keyid, path } from "./signer.mjs";

export function payoutApp(publicKeyPem) {
  const app = express().disable("x-powered-by").disable("etag");
  const endpoint = payoutEndpoint({
    keys: { [keyid]: publicKeyPem },
    nonces: memoryNonceStore(),
    allowIps: ["127.0.0.1"],
    store: memoryIdempotencyStore(),
    findBusiness: () => true,
    referenceField: "reference",
  });
  app.post(path, endpoint, (_req, res) => void res.json({ status: "acknowledged" }));
  return app;
}

/** Reads the body, one SHA-256, one Ed25519 verification over a signature base of the usual length. */
export function bareApp(publicKey, { base, signature }) {
  const app = express().disable("x-powered-by").disable("etag");
  app.post(path, express.raw({ type: () => true }), (req, res) => {
    const digest = createHash("sha256").update(req.body).digest("base64");
    if (digest.length !== 44 || !verify(null, base, publicKey, signature)) throw new Error("not verified");
    res.json({ status: "acknowledged" });
  });
  return app;
}
