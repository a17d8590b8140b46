export { gracefulClose } from "@countersign/express";
export { hook, refusal, type Hook, type Refuse } from "./hooks.ts";
export { payoutPlugin, type DrainablePlugin } from "./payout-plugin.ts";
export { idempotencyHook, webhookPlugin } from "./plugins.ts";
export { receivedRequest } from "./received-request.ts";
export { idempotencyOf } from "./route-parts.ts";
