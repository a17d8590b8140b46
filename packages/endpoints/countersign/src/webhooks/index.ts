export { captureRawBody } from "@countersign/raw-body";
export { generateEndpoint, type GeneratedEndpoint } from "./endpoint/generate-endpoint.ts";
export {
  gracefulClose,
  httpsOnly,
  receiveWebhook,
  webhookEndpoint,
  type ErrorMiddleware,
  type Middleware,
  type WebhookEndpointMiddleware,
  type WebhookEndpointOptions,
  type WebhookOptions,
} from "./endpoint/middleware.ts";
export { webhookReception } from "./endpoint/reception.ts";
export { parseWebhookEnvelope } from "./envelope/envelope.ts";
export type { PartyStatus, WebhookEnvelope, WebhookEvent, WebhookEventMap } from "./envelope/events.ts";
export { compareTimestamps, parseTimestamp, type WebhookTimestamp } from "./envelope/timestamp.ts";
export { createWebhookHandler } from "./events/webhook-handler.ts";
export { createInbox } from "./inbox/inbox.ts";
export type { CreateInboxOptions, Inbox } from "./inbox/inbox-types.ts";
export { TaskError } from "@countersign/idempotency/work";
export type {
  CreateWebhookHandlerOptions,
  EventContext,
  EventHandler,
  WebhookHandler,
} from "./events/webhook-handler-types.ts";
export type { WebhookCode } from "./refusals.ts";
