export { createRedisAnswers } from "./answer-store.ts";
export type { RedisNoticeCode } from "./server-check.ts";
export type { RedisStoresOptions } from "./options.ts";
export { createRedisStores, type RedisStores } from "./stores.ts";
export type { RedisIdempotencyStore } from "./idempotency-store.ts";
export type { RedisNonceStore } from "./nonce-store.ts";
