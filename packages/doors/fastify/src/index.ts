export { gracefulClose } from "@countersign/express";
export { hook, refusal, type Hook, type Refuse, type RefusalOptions } from "./hooks.ts";
export {
  idempotencyHook,
  idempotencyOf,
  payoutPlugin,
  webhookPlugin,
  type DrainablePlugin,
  type PayoutPluginOptions,
  type WebhookPluginOptions,
} from "./plugins.ts";
export { receivedRequest } from "./received-request.ts";
