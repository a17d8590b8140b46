import { guardErrors } from "@countersign/express";
import { jsonBody } from "@countersign/raw-body";
import { verifyPayload, webhookHmac } from "@countersign/webhook-hmac";
import express, { type Express } from "express";

/** Anywhere: the bytes as they came, the header fields, the secrets. Throws an error whose `code` says what is wrong. */
export function readEvent(bytes: Uint8Array, headers: Headers, secrets: readonly string[]): unknown {
  return JSON.parse(verifyPayload(bytes, headers, secrets, { scheme: "stripe" }).bytes.toString());
}

/** On Express: `secrets` holds the new one, then the old one. */
export function createApp(secrets: readonly string[]): Express {
  const app = express();
  const verify = webhookHmac({ scheme: "github", secrets });
  app.post("/webhooks/github", verify, jsonBody(), (_req, res) => void res.end());
  return app.use(guardErrors());
}
