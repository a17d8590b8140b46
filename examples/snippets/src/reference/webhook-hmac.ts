import { guardErrors } from "@countersign/express";
import { answer, idempotencyGuard } from "@countersign/idempotency-guard";
import { jsonBody } from "@countersign/raw-body";
import { type SqliteDatabase, createStores } from "@countersign/store-sql";
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
  apply: (event: unknown) => void,
): Express {
  const verify = webhookHmac({ scheme: "github", secrets, limit: "25mb" });
  // The signature has no timestamp: a delivery that comes again is
  // acknowledged and not handled.
  const once = idempotencyGuard({
    stores: createStores({ database }),
    scope: "github",
    key: (req) => req.headers["x-github-delivery"],
    // A later attempt of a delivery may have other bytes.
    fingerprint: () => "delivery",
    doneStatus: 200,
    handle(req) {
      console.log(req.webhook?.secretIndex);
      // Parsed from the bytes that were verified. What this writes commits
      // with the delivery's id.
      apply(req.body);
      return answer(200);
    },
  });
  const app = express();
  app.post("/webhooks/github", verify, jsonBody(), once);
  return app.use(guardErrors());
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
