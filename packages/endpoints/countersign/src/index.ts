// What a platform that receives payouts and webhooks needs: both endpoints, the stores on SQLite and in memory, and what goes with
// them. Each name is its own package's: nothing is made here.
export * from "@countersign/payout";
export * from "@countersign/store-sqlite";
export * from "@countersign/webhooks";
// Where errors of the endpoints, of a body parser and of handlers become answers.
export { guardErrors, type GuardErrorsOptions } from "@countersign/express";
export {
  GuardError,
  guardChannelName,
  isGuardError,
  noticeChannelName,
  OptionError,
  type GuardEvent,
  type GuardNotice,
} from "@countersign/core";
// Keys that live, nonces, and what stores of one's own implement.
export {
  cachedKeys,
  directoryKeys,
  jwksKeys,
  keyUse,
  keyUseChannelName,
  memoryNonceStore,
  type Keys,
  type KeySource,
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
