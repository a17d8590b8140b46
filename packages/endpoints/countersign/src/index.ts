// Everything that receives payouts and webhooks: both endpoints, the SQL stores and those in memory. Re-exports only.
export * from "./payout/index.ts";
export * from "@countersign/store-sql";
export * from "./webhooks/index.ts";
export { guardErrors } from "@countersign/express";
export {
  GuardError,
  guardChannelName,
  isGuardError,
  noticeChannelName,
  OptionError,
  type GuardEvent,
  type GuardNotice,
} from "@countersign/core";
export {
  cachedKeys,
  directoryKeys,
  jwksKeys,
  keyUse,
  memoryNonceStore,
  type Keys,
  type KeySource,
  type CachingKeyStore,
  type ImportingKeyStore,
  type KeyStore,
  type KeyUse,
  type KeyUseTable,
  type LiveKeyStore,
  type NonceStore,
} from "@countersign/http-signature-verify";
export {
  memoryIdempotencyStore,
  type MemoryIdempotencyStore,
  type IdempotencyStore,
} from "@countersign/idempotency";
export type { RequestIdempotency } from "@countersign/idempotency-guard";
