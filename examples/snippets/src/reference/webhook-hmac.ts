import { guardErrors } from "@countersign/express";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { jsonBody } from "@countersign/raw-body";
import {
  createSqliteStores,
  type SqliteDatabase,
} from "@countersign/store-sqlite";
import {
  signPayload,
  verifyPayload,
  webhookHmac,
} from "@countersign/webhook-hmac";
import express, { type Express } from "express";

/**
 * Anywhere: the bytes as they came, the header fields, the secrets. Throws an
 * error whose `code` says what is wrong.
 */
export function readEvent(
  bytes: Uint8Array,
  headers: Headers,
  secrets: readonly string[],
): unknown {
  const payload = verifyPayload(bytes, headers, secrets, {
    scheme: "stripe",
  });
  return JSON.parse(payload.bytes.toString());
}

/**
 * `secrets` holds the new one, then the old one. Drop the old one when
 * req.webhook.secretIndex is no longer 1.
 */
export function createApp(
  secrets: readonly string[],
  database: SqliteDatabase,
): Express {
  const app = express();
  const verify = webhookHmac({ scheme: "github", secrets });
  const { idempotency: store } = createSqliteStores({ database });
  // The signature has no timestamp: a delivery that comes again is
  // acknowledged and not handled.
  const once = idempotencyGuard({
    store,
    key: (req) => req.headers["x-github-delivery"],
    doneStatus: 200,
  });
  app.post("/webhooks/github", verify, once, jsonBody(), (req, res) => {
    // req.body was parsed from the bytes that were verified.
    console.log(req.webhook?.secretIndex, req.body);
    res.end();
  });
  app.use(guardErrors());
  return app;
}

// The sender's side of the default scheme: the signature of the very bytes
// that are sent.
export const headersOf = (
  body: string,
  secret: string,
): Record<string, string> => ({
  "Content-Type": "application/json",
  "X-Payload-Signature": signPayload(Buffer.from(body), secret),
});
