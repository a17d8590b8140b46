import { GuardError } from "@countersign/core";
import { comeAgain, pageOf } from "@countersign/core/door";

export type IdempotencyCode = "draining" | "idempotency-lost" | "idempotency-store-unavailable";

export function storeUnavailable(cause: unknown, retryAfterSeconds: number): GuardError<IdempotencyCode> {
  return new GuardError<IdempotencyCode>({
    status: 503,
    code: "idempotency-store-unavailable",
    message: "the idempotency store failed or did not answer in time",
    headers: { "Retry-After": String(retryAfterSeconds) },
    cause,
  });
}

/** Says that the process ends: another one takes the retry. */
export function keysDraining(retryAfterSeconds: number): GuardError<IdempotencyCode> {
  const init = comeAgain("draining", "this process is being shut down and begins nothing", retryAfterSeconds);
  // A proxy would come again on its kept connection, and be refused again (RFC 9112 section 9.6).
  return new GuardError<IdempotencyCode>({ ...init, headers: { ...init.headers, Connection: "close" } });
}

/** Says that the attempt does not own the key any more: its transaction has to roll back. */
export function idempotencyLost(retryAfterSeconds: number): GuardError<IdempotencyCode> {
  return new GuardError<IdempotencyCode>(
    comeAgain(
      "idempotency-lost",
      "this attempt does not own the idempotency key any more",
      retryAfterSeconds,
    ),
  );
}

export function noTransactions(factoryName: string): TypeError {
  const page = pageOf("reference/packages/idempotency.html#stores-with-completein");
  return new TypeError(
    `${factoryName}: completeIn: this store has no transactions; succeed without it instead, or take one that has. See ${page}`,
  );
}
