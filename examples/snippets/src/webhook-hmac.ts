import { guardErrors } from "@countersign/express";
import { answer, idempotencyGuard } from "@countersign/idempotency-guard";
import { jsonBody } from "@countersign/raw-body";
import { type SqliteDatabase, createStores } from "@countersign/store-sql";
import { verifyPayload, webhookHmac } from "@countersign/webhook-hmac";
import express, { type Express } from "express";

/** Anywhere. Throws an error whose `code` says what is wrong. */
export function readEvent(
  bytes: Uint8Array,
  headers: Headers,
  secrets: readonly string[],
): unknown {
  const options = { scheme: "stripe" } as const;
  const verified = verifyPayload(bytes, headers, secrets, options);
  return JSON.parse(verified.bytes.toString());
}

/** On Express. A delivery's id commits with what `apply` writes, once. */
export function createApp(
  secrets: readonly string[],
  database: SqliteDatabase,
  apply: (event: unknown) => void,
): Express {
  const verify = webhookHmac({ scheme: "github", secrets, limit: "25mb" });
  const once = idempotencyGuard({
    stores: createStores({ database }),
    scope: "github",
    key: (req) => req.headers["x-github-delivery"],
    // A later attempt of a delivery may have other bytes.
    fingerprint: () => "delivery",
    doneStatus: 200,
    handle({ body }) {
      apply(body);
      return answer(200);
    },
  });
  const app = express();
  app.post("/webhooks/github", verify, jsonBody(), once);
  return app.use(guardErrors());
}
