// What a webhook endpoint needs beside it, for projects in which only direct dependencies can be imported (pnpm).
export type { ErrorMiddleware, Middleware } from "@countersign/guard";
export type { DrainOptions, DrainReport } from "@countersign/idempotency-guard";
export { captureRawBody } from "@countersign/raw-body";
export { parseWebhookEnvelope, type WebhookEnvelopeOptions } from "./envelope.ts";
export { allFields } from "./events.ts";
export type {
  BuyerStatusChanged,
  InvalidWebhookEvent,
  KnownEventType,
  PartyStatus,
  PaymentRequestReminder,
  PaymentRequestRepaid,
  ReceivedPartyStatus,
  SellerStatusChanged,
  UnknownEventType,
  UnknownWebhookEvent,
  WebhookEnvelope,
  WebhookEvent,
  WebhookEventFields,
  WebhookEventMap,
} from "./events.ts";
export {
  generateEndpoint,
  type GeneratedEndpoint,
  type GenerateEndpointOptions,
} from "./generate-endpoint.ts";
export { httpsOnly, type HttpsOnlyOptions } from "./https-only.ts";
export { latestOnly, type LatestOnlyOptions } from "./latest-only.ts";
export {
  memoryLatestTimestamps,
  type LatestTimestamps,
  type MemoryLatestTimestampsOptions,
} from "./latest-timestamps.ts";
export { receiveWebhook } from "./receive-webhook.ts";
export { compareTimestamps, parseTimestamp, type WebhookTimestamp } from "./timestamp.ts";
export { webhookEndpoint, type WebhookEndpointMiddleware } from "./webhook-endpoint.ts";
export type { WebhookEndpointOptions } from "./webhook-endpoint-options.ts";
export { createWebhookHandler } from "./webhook-handler.ts";
export type {
  CreateWebhookHandlerOptions,
  EventContext,
  EventFailure,
  EventHandler,
  EventOf,
  EventOutcome,
  EventResult,
  OtherEventType,
  WebhookHandler,
  WebhookOutcome,
} from "./webhook-handler-types.ts";
