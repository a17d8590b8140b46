import { GuardError, isGuardError } from "@countersign/core";
import {
  assertReadableBody,
  comeAgain,
  isSentAsIs,
  unanswered,
  type HeaderLines,
} from "@countersign/core/internal";
import type { IdempotencyKeys } from "@countersign/idempotency";
import type { KeyAttempt } from "@countersign/idempotency/internal";
import type { IdempotencyGuardCode } from "./codes.ts";
import type { ResolvedOwnerOptions } from "./options.ts";

export interface Refusing {
  readonly keys: Pick<IdempotencyKeys, "notice">;
  readonly options: Pick<
    ResolvedOwnerOptions,
    "heldRetryAfterSeconds" | "inFlightStatus" | "retryAfterSeconds" | "reusedStatus"
  >;
}

const fixed = {
  // I2: only for a `done` record read from the store. On the payout's wire 409 ends the retries.
  "already-processed": [409, "the idempotency key has been processed"],
  "fingerprint-invalid": [
    500,
    "idempotencyGuard: option fingerprint must return 1 to 128 printable ASCII characters",
  ],
  "fingerprint-missing": [
    500,
    "idempotencyGuard found no captured body to tell one payload from another: mount rawBody() or the signature guard " +
      "before it, give your body parser verify: captureRawBody, or give the option fingerprint",
  ],
  "handler-without-response": [
    500,
    "the handler returned no Response, and its key is held: return a Response on every path, or throw",
  ],
  "idempotency-guard-twice": [
    500,
    "idempotencyGuard() runs twice for one request: mount it once on each route",
  ],
  "idempotency-key-missing": [400, "option key found no idempotency key in the request"],
  "request-aborted": [400, "the client left while its request waited for the first attempt"],
} as const satisfies Partial<Record<IdempotencyGuardCode, readonly [status: number, message: string]>>;

export function refusal(code: keyof typeof fixed): GuardError<IdempotencyGuardCode> {
  const [status, message] = fixed[code];
  return new GuardError<IdempotencyGuardCode>({ status, code, message });
}

/** For an adapter whose handler returned no response. */
export function withoutResponse(): GuardError<IdempotencyGuardCode> {
  return refusal("handler-without-response");
}

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

/** For a key that an operator has to decide, see the store's `resolve`. */
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

function noticeReuse(keys: Refusing["keys"], { key, req }: KeyAttempt): void {
  keys.notice({
    code: "idempotency-key-reused",
    key,
    message: "came again with another payload",
    req,
  });
}

interface ReadAnswers {
  readonly doneStatus: 409 | 200 | 204;
  readonly inFlightStatus: 503 | 409;
}

/** On the payout's wire 409 means "already paid": then nothing but a done key may say it. */
export function reserves409({ doneStatus, inFlightStatus }: ReadAnswers): boolean {
  return doneStatus === 409 && inFlightStatus === 503;
}

/**
 * I16: an error that undid a handler's transaction, as it may leave. Its 409, where that means "paid", or a status that GuardError would refuse
 * becomes 500 and an alarm: the service would not send the payout again.
 */
export function asUnpaid(
  error: unknown,
  { key, req }: KeyAttempt,
  { keys, reserved }: { readonly keys: Pick<IdempotencyKeys, "alarm">; readonly reserved: boolean },
): unknown {
  const refused = saysPaid("the handler", error, reserved);
  if (refused === undefined) return error;
  const message = `has a handler whose refusal says "paid", and was rolled back`;
  keys.alarm({ code: "handler-answered-409", key, message, req, error });
  return refused;
}

/** I16: what an option threw before any key was claimed, as it may leave. */
export function asUnclaimed(error: unknown, option: string, reserved: boolean): unknown {
  return saysPaid(`option ${option}`, error, reserved) ?? error;
}

function saysPaid(who: string, error: unknown, reserved: boolean): GuardError | undefined {
  if (!isGuardError(error)) return undefined;
  const { status } = error;
  const isFailure = Number.isInteger(status) && status >= 400 && status <= 599;
  if (isFailure && !(reserved && status === 409)) return undefined;
  return new GuardError<IdempotencyGuardCode>({
    status: 500,
    code: "handler-answered-409",
    message: `${who} refuses with ${status}, which the caller would take for "paid": refuse with another 4xx`,
    cause: error,
  });
}

export function keyInvalid(fault: string): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 400,
    code: "idempotency-key-invalid",
    message: `the idempotency key ${fault}`,
  });
}

/** No key is claimed by then. */
export function fingerprintLate(
  storeTimeoutMs: number,
  retryAfterSeconds: number,
): GuardError<IdempotencyGuardCode> {
  const message = `idempotencyGuard: option fingerprint did not answer within ${storeTimeoutMs} ms`;
  return new GuardError<IdempotencyGuardCode>(
    unanswered("fingerprint-unavailable", message, undefined, retryAfterSeconds),
  );
}

/** A framework's request, or its own around Node's. */
export interface MaybeRaw {
  readonly rawHeaders?: unknown;
  readonly raw?: unknown;
}

export function rawHeadersOf(req: MaybeRaw): HeaderLines | undefined {
  const { rawHeaders } = req.rawHeaders === undefined ? Object(req.raw) : req;
  return Array.isArray(rawHeaders) ? { rawHeaders } : undefined;
}

/** Throws 415 for a content coding, whose bytes a parser has undone and captureRawBody leaves out; else 500, the app's mistake. */
export function refuseUncaptured(req: MaybeRaw): never {
  const raw = rawHeadersOf(req);
  if (raw !== undefined && !isSentAsIs(raw)) assertReadableBody(raw, Number.MAX_SAFE_INTEGER);
  throw refusal("fingerprint-missing");
}
