export { gracefulClose } from "@countersign/express";
export { hook, refusal, type Hook, type Refuse, type RefusalOptions } from "./hooks.ts";
export {
  payoutPlugin,
  type DrainablePlugin,
  type PayoutPluginOptions,
  type PayoutTransactionPluginOptions,
} from "./payout-plugin.ts";
export { idempotencyHook, webhookPlugin, type WebhookPluginOptions } from "./plugins.ts";
export { receivedRequest } from "./received-request.ts";
export { idempotencyOf } from "./route-parts.ts";
