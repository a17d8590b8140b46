import { guardErrors, type GuardRequest } from "@countersign/express";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { jsonBody } from "@countersign/raw-body";
import { type SqliteDatabase, createStores } from "@countersign/store-sql";
import {
  verifiedPayload,
  webhookHmac,
  type WebhookHmacOptions,
} from "@countersign/webhook-hmac";
import express, { type Express, type RequestHandler } from "express";

/**
 * `secrets` come from the environment: while one is exchanged, the new one
 * and the old one.
 */
export interface Secrets {
  readonly github: readonly string[];
  readonly stripe: readonly string[];
  readonly slack: readonly string[];
  readonly svix: readonly string[];
  readonly shopify: readonly string[];
}

const signedBy = (
  scheme: WebhookHmacOptions["scheme"],
  secrets: readonly string[],
  limit = "1mb",
): RequestHandler => webhookHmac({ scheme, secrets, limit });

/** Slack takes the URL of a receiver that answers with the challenge. */
const answerSlackChallenge: RequestHandler = (req, res, next) => {
  const { type, challenge } = Object(req.body);
  if (type === "url_verification") res.json({ challenge });
  else next();
};

/** An event has an identifier, and a notice of a rate limit its minute. */
function slackIdOf(body: unknown): unknown {
  const { type, event_id, api_app_id, team_id, minute_rate_limited } =
    Object(body);
  return type === "app_rate_limited"
    ? [type, api_app_id, team_id, minute_rate_limited].join(":")
    : event_id;
}

/**
 * Each sender has a route of its own; `handle` runs once for each message.
 */
export function createApp(
  database: SqliteDatabase,
  secrets: Secrets,
  handle: RequestHandler,
): Express {
  const { idempotency: store } = createStores({ database });
  const once = (
    sender: string,
    idOf: (req: GuardRequest) => unknown,
  ): RequestHandler =>
    idempotencyGuard({
      store,
      scope: sender,
      key: idOf,
      // The identifier decides, not the bytes: they may differ in a later
      // attempt, such as Stripe's count of pending_webhooks.
      fingerprint: () => "message",
      // A message that was handled is acknowledged, not refused.
      doneStatus: 200,
    });

  const app = express();
  app.post(
    "/webhooks/github",
    signedBy("github", secrets.github, "25mb"),
    once("github", (req) => req.headers["x-github-delivery"]),
    jsonBody(),
    handle,
  );
  app.post(
    "/webhooks/shopify",
    signedBy("shopify", secrets.shopify),
    once("shopify", (req) => req.headers["x-shopify-webhook-id"]),
    jsonBody(),
    handle,
  );
  // Signed are a time and the body, and the body holds the identifier.
  app.post(
    "/webhooks/stripe",
    signedBy("stripe", secrets.stripe),
    jsonBody(),
    once("stripe", (req) => Object(req.body).id),
    handle,
  );
  // Slack's events, and its slash commands, which are forms.
  app.post(
    "/webhooks/slack",
    signedBy("slack", secrets.slack),
    jsonBody(),
    answerSlackChallenge,
    once("slack", (req) => slackIdOf(req.body)),
    handle,
  );
  app.post(
    "/webhooks/slack/commands",
    signedBy("slack", secrets.slack),
    express.urlencoded({ extended: false }),
    once("slack-commands", (req) => Object(req.body).trigger_id),
    handle,
  );
  // The identifier is one of what is signed.
  app.post(
    "/webhooks/svix",
    signedBy("svix", secrets.svix),
    once("svix", (req) => verifiedPayload(req)?.id),
    jsonBody(),
    handle,
  );
  app.use(guardErrors());
  return app;
}
