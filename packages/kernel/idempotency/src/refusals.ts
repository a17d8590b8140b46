import { GuardError, isGuardError } from "@countersign/core";
import { comeAgain, unanswered } from "@countersign/core/internal";

export type IdempotencyCode =
  | "commit-unknown"
  | "draining"
  | "idempotency-lost"
  | "idempotency-store-unavailable"
  | "nothing-written"
  | "transaction-broken"
  | "transaction-conflict"
  | "transaction-held"
  | "transaction-timed-out"
  | "transaction-unavailable"
  | "transaction-unknown";

export function storeUnavailable(cause: unknown, retryAfterSeconds: number): GuardError<IdempotencyCode> {
  const message = "the idempotency store failed or did not answer in time";
  return new GuardError<IdempotencyCode>(
    unanswered("idempotency-store-unavailable", message, cause, retryAfterSeconds),
  );
}

/** Says that the process ends: another one takes the retry. */
export function keysDraining(retryAfterSeconds: number): GuardError<IdempotencyCode> {
  const init = comeAgain("draining", "this process is being shut down and begins nothing", retryAfterSeconds);
  // A proxy would come again on its kept connection, and be refused again (RFC 9112 section 9.6).
  return new GuardError<IdempotencyCode>({ ...init, headers: { ...init.headers, Connection: "close" } });
}

/** Says that the attempt does not own the key any more. */
export function idempotencyLost(retryAfterSeconds: number): GuardError<IdempotencyCode> {
  const message = "this attempt does not own the idempotency key any more";
  return new GuardError<IdempotencyCode>(comeAgain("idempotency-lost", message, retryAfterSeconds));
}

type TransactionRefusal = (cause: unknown, retryAfterSeconds: number) => GuardError<IdempotencyCode>;

function refusalOf(code: IdempotencyCode, message: string): TransactionRefusal {
  return (cause, retryAfterSeconds) =>
    new GuardError<IdempotencyCode>({ ...comeAgain(code, message, retryAfterSeconds), cause });
}

/** Nothing was written. */
export const transactionUnavailable: TransactionRefusal = refusalOf(
  "transaction-unavailable",
  "no transaction could be begun, or its connection was lost before COMMIT",
);

export const transactionConflict: TransactionRefusal = refusalOf(
  "transaction-conflict",
  "the transaction was rolled back because of others, each time",
);

/** Whatever its handler still does is rolled back. */
export const transactionTimedOut: TransactionRefusal = refusalOf(
  "transaction-timed-out",
  "the transaction was not ready for COMMIT in time, and is rolled back",
);

/** The retry finds out. */
export const commitUnknown: TransactionRefusal = refusalOf(
  "commit-unknown",
  "COMMIT was sent and its reply was lost: the key is done if it took effect",
);

const heldCode = "transaction-held";

/** The handler has failed, and something of its transaction has committed all the same: an operator has to look. */
export const transactionHeld: TransactionRefusal = refusalOf(
  heldCode,
  "the handler's transaction failed after something of it had committed: the key is held, or done if all of it had",
);

/** The handler has failed, and the store did not say whether something of its transaction has committed: an operator has to look. */
export const transactionUnknown: TransactionRefusal = refusalOf(
  "transaction-unknown",
  "the handler's transaction failed, and the store did not say whether something of it had committed",
);

/** Why the key of a handler is held that has changed no row by its `tx`. */
export const nothingWrittenReason = "nothing-written";

/** Nothing of the transaction has committed; what the handler wrote by another connection may have. */
export function nothingWritten(retryAfterSeconds: number): GuardError<IdempotencyCode> {
  const message =
    "the handler has returned without changing a row by its tx: the key is held; look for a missing await, or for a statement " +
    "that goes by another connection";
  return new GuardError<IdempotencyCode>(comeAgain(nothingWrittenReason, message, retryAfterSeconds));
}

const broken = "transaction-broken";

/** For stores: the handler has left a transaction that cannot commit what it wrote. `what` says how. */
export function transactionBroken(what: string, cause?: unknown): GuardError<IdempotencyCode> {
  const message = `the handler's transaction cannot commit: ${what}`;
  return new GuardError<IdempotencyCode>({ status: 500, code: broken, message, cause });
}

/** For stores: a part of what the handler wrote has stayed after ROLLBACK, and the key is held. `what` says why. */
export function transactionNotRolledBack(what: string, cause?: unknown): GuardError<IdempotencyCode> {
  const message = `what the handler wrote was not all rolled back: ${what}`;
  return new GuardError<IdempotencyCode>({ status: 500, code: heldCode, message, cause });
}

/** True for an error of {@link transactionNotRolledBack}. */
export function isNotRolledBack(error: unknown): boolean {
  return isGuardError(error) && error.code === heldCode;
}

/** Whether it says for certain that the transaction has not committed. */
export function isTransactionBroken(error: unknown): boolean {
  return isGuardError(error) && error.code === broken;
}
