export { captureRawBody } from "@countersign/raw-body";
export type { WebhookCode } from "./codes.ts";
export { parseWebhookEnvelope, type WebhookEnvelopeOptions } from "./envelope/envelope.ts";
export {
  allFields,
  type BuyerStatusChanged,
  type PartyStatus,
  type PaymentRequestReminder,
  type PaymentRequestRepaid,
  type SellerStatusChanged,
  type WebhookEnvelope,
  type WebhookEvent,
  type WebhookEventMap,
} from "./envelope/events.ts";
export {
  generateEndpoint,
  type GeneratedEndpoint,
  type GenerateEndpointOptions,
} from "./endpoint/generate-endpoint.ts";
export {
  latestOnly,
  memoryLatestTimestamps,
  type LatestTimestamps,
  type LatestOnlyOptions,
  type MemoryLatestTimestampsOptions,
} from "./events/latest-only.ts";
export { webhookReception } from "./endpoint/reception.ts";
export { compareTimestamps, parseTimestamp, type WebhookTimestamp } from "./envelope/timestamp.ts";
export {
  gracefulClose,
  httpsOnly,
  receiveWebhook,
  webhookEndpoint,
  type WebhookEndpointMiddleware,
  type ErrorMiddleware,
  type Middleware,
  type WebhookEndpointOptions,
  type WebhookOptions,
} from "./endpoint/middleware.ts";
export { createWebhookHandler } from "./events/webhook-handler.ts";
export type {
  CreateWebhookHandlerOptions,
  EventContext,
  EventHandler,
  EventOutcome,
  WebhookHandler,
} from "./events/webhook-handler-types.ts";
export type { HttpsOnlyOptions } from "./endpoint/webhook-endpoint-options.ts";
