export {
  gracefulClose,
  type CloseReport,
  type Drainable,
  type GracefulCloseOptions,
} from "@countersign/express";
export { hook, refusal, type Hook, type Refuse, type RefusalOptions } from "./hooks.ts";
export {
  idempotencyHook,
  idempotencyOf,
  payoutPlugin,
  webhookPlugin,
  type DrainablePlugin,
  type IdempotencyHookOptions,
  type PayoutPluginOptions,
  type WebhookPluginOptions,
} from "./plugins.ts";
export { receivedRequest, type ConnectionOptions } from "./received-request.ts";
