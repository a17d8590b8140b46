import { GuardError, requestAborted } from "@countersign/guard";
import { notice } from "./notices.ts";
import { factory, type ResolvedOptions } from "./options.ts";
import type { Attempt } from "./attempt.ts";

type RefusalOptions = Pick<ResolvedOptions, "reusedStatus" | "retryAfterSeconds" | "heldRetryAfterSeconds">;

/** I2: for a `done` record that was read from the store, and for nothing else. On this wire 409 ends the retries. */
export function alreadyProcessed(attempt: Attempt, fingerprint: string, options: RefusalOptions): GuardError {
  if (fingerprint === attempt.fingerprint) {
    return new GuardError({
      status: 409,
      code: "already-processed",
      message: "the idempotency key has been processed",
    });
  }
  noticeReuse(attempt);
  return new GuardError({
    status: options.reusedStatus,
    code: "idempotency-key-reused",
    message: "the idempotency key has been processed with another payload",
  });
}

/** I5: the first attempt still runs. */
export function inFlight(options: RefusalOptions): GuardError {
  return unavailable("in-flight", "another attempt owns the idempotency key", options.retryAfterSeconds);
}

/** An operator has to decide, see `resolve` of the store. */
export function held(
  attempt: Attempt,
  record: { readonly fingerprint: string; readonly reason: string },
  options: RefusalOptions,
): GuardError {
  if (record.fingerprint !== attempt.fingerprint) noticeReuse(attempt);
  notice(factory, {
    code: "held",
    key: attempt.key,
    message: `waits for an operator's decision: ${record.reason}`,
    req: attempt.req,
  });
  return unavailable("held", `the idempotency key is held: ${record.reason}`, options.heldRetryAfterSeconds);
}

/** The store failed, or was too slow. */
export function storeUnavailable(cause: unknown, retryAfterSeconds: number): GuardError {
  return new GuardError({
    status: 503,
    code: "idempotency-store-unavailable",
    message: "the idempotency store failed or did not answer in time",
    headers: { "Retry-After": String(retryAfterSeconds) },
    cause,
  });
}

/** The process ends: another one takes the request when it comes again. */
export function keysDraining(retryAfterSeconds: number): GuardError {
  return unavailable("draining", "this process is being shut down and begins nothing", retryAfterSeconds);
}

/** The attempt does not own the key any more: its transaction has to roll back. */
export function idempotencyLost(retryAfterSeconds: number): GuardError {
  return unavailable(
    "idempotency-lost",
    "this attempt does not own the idempotency key any more",
    retryAfterSeconds,
  );
}

/** The waiting client has left; nobody is there to answer. */
export function clientLeft(): GuardError {
  return new GuardError({
    status: 400,
    code: requestAborted,
    message: "the client left while its request waited for the first attempt",
  });
}

function unavailable(code: string, message: string, retryAfterSeconds: number): GuardError {
  return new GuardError({
    status: 503,
    code,
    message,
    headers: { "Retry-After": String(retryAfterSeconds) },
    problem: { code },
  });
}

function noticeReuse({ key, req }: Attempt): void {
  notice(factory, {
    code: "idempotency-key-reused",
    key,
    message: "came again with another payload",
    req,
  });
}
