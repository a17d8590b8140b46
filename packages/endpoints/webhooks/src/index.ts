// What a webhook endpoint needs beside it, for projects in which only direct dependencies can be imported (pnpm).
export {
  gracefulClose,
  type CloseReport,
  type Drainable,
  type GracefulCloseOptions,
  type ErrorMiddleware,
  type Middleware,
} from "@countersign/express";
export type { DrainOptions, DrainReport } from "@countersign/idempotency";
export { captureRawBody } from "@countersign/raw-body";
export type { WebhookCode } from "./codes.ts";
export { parseWebhookEnvelope, type WebhookEnvelopeOptions } from "./envelope/envelope.ts";
export {
  allFields,
  type BuyerStatusChanged,
  type InvalidWebhookEvent,
  type KnownEventType,
  type PartyStatus,
  type PaymentRequestReminder,
  type PaymentRequestRepaid,
  type ReceivedPartyStatus,
  type SellerStatusChanged,
  type UnknownEventType,
  type UnknownWebhookEvent,
  type WebhookEnvelope,
  type WebhookEvent,
  type WebhookEventFields,
  type WebhookEventMap,
} from "./envelope/events.ts";
export {
  generateEndpoint,
  type GeneratedEndpoint,
  type GenerateEndpointOptions,
} from "./endpoint/generate-endpoint.ts";
export { httpsOnly, type HttpsOnlyOptions } from "./endpoint/https-only.ts";
export {
  latestOnly,
  memoryLatestTimestamps,
  type LatestOnlyOptions,
  type LatestTimestamps,
  type MemoryLatestTimestampsOptions,
} from "./events/latest-only.ts";
export {
  webhookReception,
  type FoundOfWebhook,
  type ReceiveWebhook,
  type WebhookDoor,
} from "./endpoint/reception.ts";
export { receiveWebhook } from "./endpoint/receive-webhook.ts";
export { compareTimestamps, parseTimestamp, type WebhookTimestamp } from "./envelope/timestamp.ts";
export { webhookEndpoint, type WebhookEndpointMiddleware } from "./endpoint/webhook-endpoint.ts";
export type { WebhookEndpointOptions, WebhookOptions } from "./endpoint/webhook-endpoint-options.ts";
export { createWebhookHandler } from "./events/webhook-handler.ts";
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
} from "./events/webhook-handler-types.ts";
