// What a guard needs beside it, for projects in which only direct dependencies can be imported (pnpm).
export type { IdempotencyGuardCode } from "./codes.ts";
export {
  idempotencyGuard,
  idempotencyKeyHeader,
  type DrainableMiddleware,
  type IdempotencyGuardOptions,
} from "./middleware.ts";
export type { RequestIdempotency } from "./run.ts";
