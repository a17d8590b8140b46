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
export { compareTimestamps, parseTimestamp, type WebhookTimestamp } from "./envelope/timestamp.ts";
export {
  gracefulClose,
  httpsOnly,
  receiveWebhook,
  webhookEndpoint,
  type CloseReport,
  type Drainable,
  type ErrorMiddleware,
  type GracefulCloseOptions,
  type Middleware,
  type WebhookEndpointMiddleware,
  type WebhookEndpointOptions,
  type WebhookOptions,
} from "./endpoint/middleware.ts";
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
export type { HttpsOnlyOptions } from "./endpoint/webhook-endpoint-options.ts";
