import { GuardError } from "@countersign/core";
import { comeAgain, requestAborted } from "@countersign/core/door";
import type { IdempotencyKeys } from "@countersign/idempotency";
import type { KeyAttempt } from "@countersign/idempotency/door";
import type { IdempotencyGuardCode } from "./codes.ts";
import type { ResolvedOwnerOptions } from "./options.ts";

/** Who refuses. */
interface Refusing {
  readonly keys: IdempotencyKeys;
  readonly options: ResolvedOwnerOptions;
}

/** I2: for a `done` record that was read from the store, and for nothing else. On the payout's wire 409 ends the retries. */
export function alreadyProcessed(): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 409,
    code: "already-processed",
    message: "the idempotency key has been processed",
  });
}

/** The key is done, with another payload. */
export function reused({ keys, options }: Refusing, attempt: KeyAttempt): GuardError<IdempotencyGuardCode> {
  noticeReuse(keys, attempt);
  return new GuardError<IdempotencyGuardCode>({
    status: options.reusedStatus,
    code: "idempotency-key-reused",
    message: "the idempotency key has been processed with another payload",
  });
}

/** I5: the first attempt still runs. */
export function inFlight({ options }: Refusing): GuardError<IdempotencyGuardCode> {
  const { inFlightStatus, retryAfterSeconds } = options;
  const code = "in-flight";
  const message = "another attempt owns the idempotency key";
  if (inFlightStatus === 503) {
    return new GuardError<IdempotencyGuardCode>(comeAgain(code, message, retryAfterSeconds));
  }
  const headers = { "Retry-After": String(retryAfterSeconds) };
  return new GuardError<IdempotencyGuardCode>({ status: inFlightStatus, code, message, headers });
}

/** An operator has to decide, see `resolve` of the store. */
export function held(
  { keys, options }: Refusing,
  attempt: KeyAttempt,
  record: { readonly fingerprint: string; readonly reason: string },
): GuardError<IdempotencyGuardCode> {
  if (record.fingerprint !== attempt.fingerprint) noticeReuse(keys, attempt);
  keys.notice({
    code: "held",
    key: attempt.key,
    message: `waits for an operator's decision: ${record.reason}`,
    req: attempt.req,
  });
  return new GuardError<IdempotencyGuardCode>(
    comeAgain("held", `the idempotency key is held: ${record.reason}`, options.heldRetryAfterSeconds),
  );
}

/** The waiting client has left; nobody is there to answer. */
export function clientLeft(): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 400,
    code: requestAborted,
    message: "the client left while its request waited for the first attempt",
  });
}

function noticeReuse(keys: IdempotencyKeys, { key, req }: KeyAttempt): void {
  keys.notice({
    code: "idempotency-key-reused",
    key,
    message: "came again with another payload",
    req,
  });
}

/** The option `key` found none. */
export function keyMissing(): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 400,
    code: "idempotency-key-missing",
    message: "the request has no idempotency key",
  });
}

export function keyInvalid(fault: string): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 400,
    code: "idempotency-key-invalid",
    message: `the idempotency key ${fault}`,
  });
}

/** The request owns a key already. */
export function claimedTwice(): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 500,
    code: "idempotency-guard-twice",
    message: "idempotencyGuard() runs twice for one request: mount it once on each route",
  });
}

/** No key is claimed by then. */
export function fingerprintLate(
  storeTimeoutMs: number,
  retryAfterSeconds: number,
): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 503,
    code: "fingerprint-unavailable",
    message: `idempotencyGuard: option fingerprint did not answer within ${storeTimeoutMs} ms`,
    headers: { "Retry-After": String(retryAfterSeconds) },
  });
}

/** No store promises to keep it. */
export function fingerprintInvalid(): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 500,
    code: "fingerprint-invalid",
    message: "idempotencyGuard: option fingerprint must return 1 to 128 printable ASCII characters",
  });
}

/** Nothing tells one payload from another. */
export function fingerprintMissing(): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 500,
    code: "fingerprint-missing",
    message:
      "idempotencyGuard found no captured body to tell one payload from another: mount rawBody() or the signature guard " +
      "before it, give your body parser verify: captureRawBody, or give the option fingerprint",
  });
}

/** A handler takes `undefined` for a payload. */
export function bodyNotParsed(): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 500,
    code: "body-not-parsed",
    message:
      "the handler reads req.body, and nobody has parsed it: mount jsonBody() in front of it, or read req.rawBody; behind rawBody() " +
      "and the checks express.json() finds nothing to read",
  });
}

/** Of a door whose handler returns its answer. */
export function handlerWithoutResponse(): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 500,
    code: "handler-without-response",
    message:
      "the handler returned no Response, and its key is held: return a Response on every path, or throw",
  });
}
