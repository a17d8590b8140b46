import { guardErrors } from "@countersign/express";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { jsonBody } from "@countersign/raw-body";
import {
  createSqliteStores,
  type SqliteDatabase,
} from "@countersign/store-sqlite";
import { verifyPayload, webhookHmac } from "@countersign/webhook-hmac";
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
  const options = { scheme: "stripe" } as const;
  const verified = verifyPayload(bytes, headers, secrets, options);
  return JSON.parse(verified.bytes.toString());
}

/**
 * On Express: `secrets` holds the new one, then the old one. Each delivery is
 * handled once.
 */
export function createApp(
  secrets: readonly string[],
  database: SqliteDatabase,
): Express {
  const app = express();
  const verify = webhookHmac({ scheme: "github", secrets });
  const { idempotency: store } = createSqliteStores({ database });
  const once = idempotencyGuard({
    store,
    key: (req) => req.headers["x-github-delivery"],
    doneStatus: 200,
  });
  app.post(
    "/webhooks/github",
    verify,
    once,
    jsonBody(),
    (_req, res) => void res.end(),
  );
  return app.use(guardErrors());
}
