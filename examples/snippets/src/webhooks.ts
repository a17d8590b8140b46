import { memoryIdempotencyStore } from "@countersign/idempotency";
import { createWebhookHandler, webhookEndpoint, type GeneratedEndpoint } from "@countersign/webhooks";
import express, { type Express } from "express";

const hours = 3_600_000;
// For one process on a laptop: in production give a durable store.
const handler = createWebhookHandler({
  store: memoryIdempotencyStore({ retentionMs: 72 * hours }),
  fallback: "ignore",
});
handler.on("buyer.status_changed", ({ data }) => console.log(data.buyer_id, data.new_status));

/** `endpoint`: what generateEndpoint() made up. Mount it before any body parser. */
export function createApp({ path, username, password, secret }: GeneratedEndpoint): Express {
  const app = express();
  app.use(path, webhookEndpoint({ basicAuth: { username, password }, hmac: { secret }, handler }));
  return app;
}
