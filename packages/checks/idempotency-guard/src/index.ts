export { retryLater } from "@countersign/idempotency";
export { answer, refuse, type HandlerAnswer } from "./answer.ts";
// With what a guard needs beside it, for projects that can only import direct dependencies (pnpm).
export type { IdempotencyGuardCode } from "./codes.ts";
export {
  idempotencyGuard,
  idempotencyKeyHeader,
  type DrainableMiddleware,
  type IdempotencyGuardOptions,
  type IdempotencyTransactionOptions,
} from "./middleware.ts";
export type { RequestIdempotency } from "./request-idempotency.ts";
