import { strictEqual } from "node:assert/strict";
import { captureRawBody, payoutEndpoint, payoutOf, type PayoutEndpointOptions } from "countersign/payout";
import {
  captureRawBody as captureForWebhooks,
  createWebhookHandler,
  webhookEndpoint,
  type CreateWebhookHandlerOptions,
} from "countersign/webhooks";
import express, { type Express } from "express";

export const createPayoutEndpoint = (options: PayoutEndpointOptions) => payoutEndpoint(options);

export const createHooks = (options: CreateWebhookHandlerOptions) =>
  webhookEndpoint({
    basicAuth: { credentials: [{ username: "service", password: "test-password" }] },
    hmac: { secrets: ["test-secret"] },
    handler: createWebhookHandler(options).onAny((event, { attempt }) => [event.type, attempt]),
  });

export function createApp(payouts: PayoutEndpointOptions, hooks: CreateWebhookHandlerOptions): Express {
  const app = express();
  app.use(express.json({ verify: captureRawBody }));
  app.use("/hooks/test", createHooks(hooks));
  app.post("/pay", createPayoutEndpoint(payouts), (req, res) => {
    const fence: number | undefined = req.idempotency?.fence;
    const keyid: string | undefined = req.signature?.keyid;
    res.json({ fence, keyid, bytes: req.rawBody?.length, key: payoutOf(req).idempotencyKey });
  });
  return app;
}

// One function, however it is imported: what one endpoint has captured, the other finds.
strictEqual(captureForWebhooks, captureRawBody);
