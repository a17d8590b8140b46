import { guardErrors } from "@countersign/express";
import {
  idempotencyGuard,
  idempotencyKeyHeader,
} from "@countersign/idempotency-guard";
import { jsonBody, rawBody } from "@countersign/raw-body";
import {
  type SqliteDatabase,
  createAnswers,
  createStores,
} from "@countersign/store-sql";
import { verifiedPayload, webhookHmac } from "@countersign/webhook-hmac";
import express, { type Express, type RequestHandler } from "express";

declare global {
  namespace Express {
    interface Request {
      user?: { readonly id: string } | undefined;
    }
  }
}

/**
 * `authenticate` checks who the user is, and sets `req.user`; the secrets
 * come from the environment.
 */
export function createApi(
  database: SqliteDatabase,
  authenticate: RequestHandler,
  {
    answerSecret,
    webhookSecret,
  }: { readonly answerSecret: string; readonly webhookSecret: string },
): Express {
  const { idempotency: store } = createStores({ database });
  const answers = createAnswers({ database });
  const app = express();

  const refunds = idempotencyGuard({
    store,
    scope: "refunds",
    ...idempotencyKeyHeader({
      bareKeys: true,
      caller: (req) => req.user?.id,
    }),
    replay: {
      answers,
      encryptionKeys: [{ id: "2026-11", secret: answerSecret }],
    },
  });
  app.post(
    "/refunds",
    authenticate,
    rawBody(),
    refunds,
    jsonBody(),
    (_req, res) => {
      res.status(201).json({ accepted: true });
    },
  );

  const events = idempotencyGuard({
    store,
    scope: "events",
    key: (req) => verifiedPayload(req)?.id,
    // A later attempt of a delivery may have other bytes.
    fingerprint: () => "event",
    doneStatus: 200,
  });
  const verify = webhookHmac({ scheme: "svix", secret: webhookSecret });
  app.post("/webhooks", verify, events, jsonBody(), (_req, res) => {
    res.sendStatus(200);
  });

  app.use(guardErrors());
  return app;
}
