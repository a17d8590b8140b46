import { hash } from "node:crypto";
import { types } from "node:util";
import {
  capturedRawBody,
  GuardError,
  identifierFault,
  inTime,
  option,
  OptionError,
  optionError,
  type OptionOwner,
  type OptionRule,
} from "@countersign/core";
import type { Awaitable, ResolvedKeyOptions } from "@countersign/idempotency";
import type { IdempotencyGuardCode } from "./codes.ts";

const maxKeyLength = 512;

/**
 * The key as the option `key` returned it, behind its scope; throws a GuardError (400) on anything that a store cannot keep as it
 * is, or that a reader could take for another key.
 */
export function checkIdempotencyKey(key: unknown, scope?: string): string {
  if (key === undefined || key === null || key === "") {
    throw new GuardError<IdempotencyGuardCode>({
      status: 400,
      code: "idempotency-key-missing",
      message: "the request has no idempotency key",
    });
  }
  if (typeof key !== "string") {
    // Every request would be refused: the integration is wrong, not the caller.
    if (types.isPromise(key))
      throw new TypeError("idempotencyGuard: option key must return the key, not a promise");
    throw keyInvalid(`is no string but a ${typeof key}`);
  }
  const stored = storedKey(scope, key);
  const longest = maxKeyLength - (stored.length - key.length);
  if (key.length > longest) throw keyInvalid(`has ${key.length} characters, over ${longest}`);
  // A lone surrogate has no UTF-8 form: an engine may replace it, and two keys would become one. NUL ends a text in some.
  const fault = identifierFault(key);
  if (fault !== undefined) throw keyInvalid(fault);
  return stored;
}

function keyInvalid(fault: string): GuardError<IdempotencyGuardCode> {
  return new GuardError<IdempotencyGuardCode>({
    status: 400,
    code: "idempotency-key-invalid",
    message: `the idempotency key ${fault}`,
  });
}

const scopeForm = /^[a-z0-9][a-z0-9_-]{0,31}$/;

// Whether the guard that was given this store first had a scope.
const stores = new WeakMap<object, boolean>();

/** The rule of the option `scope`. */
export const scopeRule: OptionRule<string> = option.own((scope, owner, name) => {
  if (typeof scope === "string" && scopeForm.test(scope)) return scope;
  throw optionError(owner, name, "1 to 32 lower-case letters, digits, - and _", scope);
});

/**
 * Sees to it that guards of one store have a scope each: without it `/refunds` would answer 409 to the key of a payout, and never
 * run. Two guards of the same scope share their keys because they say so. Throws an OptionError.
 */
export function assertKeysApart(owner: OptionOwner, scope: string | undefined, store: object): void {
  const first = stores.get(store);
  if (first === undefined) stores.set(store, scope !== undefined);
  else if (!first || scope === undefined) {
    throw new OptionError(owner, {
      what:
        "this store was given to another guard already, and their keys would be the same; " +
        'give each of them an option scope, for example scope: "payout" and scope: "refund"',
    });
  }
}

/** The key as the store keeps it. No scope holds a colon, so no two of them have a key in common. */
function storedKey(scope: string | undefined, key: string): string {
  return scope === undefined ? key : `${scope}:${key}`;
}

/**
 * SHA-256 of the body as received: of the captured bytes, not of `req.rawBody`, which every middleware can write. Without one every
 * payload would look the same, so that is an error (500).
 */
export function bodyFingerprint(subject: object): string {
  const bytes = capturedRawBody(subject);
  if (bytes !== undefined && bytes.length > 0) return hash("sha256", bytes, "base64url");
  throw new GuardError<IdempotencyGuardCode>({
    status: 500,
    code: "fingerprint-missing",
    message:
      "idempotencyGuard found no captured body to tell one payload from another: mount rawBody() or the signature guard " +
      "before it, give your body parser verify: captureRawBody, or give the option fingerprint",
  });
}

/** What the option says, to be awaited and checked; rejects with a GuardError (503) when it is too late. No key is claimed by then. */
export function fingerprintInTime(
  answer: Awaitable<string>,
  { storeTimeoutMs, retryAfterSeconds }: Pick<ResolvedKeyOptions, "storeTimeoutMs" | "retryAfterSeconds">,
): Awaitable<string> {
  const late = (): GuardError<IdempotencyGuardCode> =>
    new GuardError<IdempotencyGuardCode>({
      status: 503,
      code: "fingerprint-unavailable",
      message: `idempotencyGuard: option fingerprint did not answer within ${storeTimeoutMs} ms`,
      headers: { "Retry-After": String(retryAfterSeconds) },
    });
  return inTime(answer, storeTimeoutMs, late);
}

const printable = /^[\x20-\x7e]{1,128}$/;

/** The fingerprint as the option returned it; throws a GuardError (500) on what no store promises to keep. */
export function checkFingerprint(fingerprint: unknown): string {
  if (typeof fingerprint === "string" && printable.test(fingerprint)) return fingerprint;
  throw new GuardError<IdempotencyGuardCode>({
    status: 500,
    code: "fingerprint-invalid",
    message: "idempotencyGuard: option fingerprint must return 1 to 128 printable ASCII characters",
  });
}
