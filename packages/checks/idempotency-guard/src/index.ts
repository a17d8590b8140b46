// What a guard needs beside it, for projects in which only direct dependencies can be imported (pnpm).
export type { DrainOptions, DrainReport } from "@countersign/idempotency";
export type { IdempotencyGuardCode } from "./codes.ts";
export type { KeptAnswer } from "./answer-record.ts";
export {
  keyGuard,
  keyOwner,
  runOf,
  type Admission,
  type KeyClaim,
  type KeyGuard,
  type KeyOwner,
  type WhileConnected,
} from "./check.ts";
export type { IdempotencyKeyHeaderPreset } from "./key-header.ts";
export type { AnswerEncryptionKey, GivenAnswer, ReplayOptions } from "./replay.ts";
export {
  beginHandler,
  goOn,
  idempotencyGuard,
  idempotencyKeyHeader,
  type DrainableMiddleware,
  type IdempotencyGuardOptions,
  type IdempotencyKeyHeaderOptions,
  type Passage,
} from "./middleware.ts";
export type { KeyOwnerOptions } from "./options.ts";
export type { OwnedRun, RequestIdempotency } from "./run.ts";
