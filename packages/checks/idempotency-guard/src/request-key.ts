import { hash } from "node:crypto";
import { appAnswers, capturedRawBody, identifierFault, inTime } from "@countersign/core/internal";
import type { Awaitable } from "@countersign/idempotency";
import { factoryName, type ResolvedOwnerOptions } from "./options.ts";
import { asUnclaimed, fingerprintLate, keyInvalid, refusal, refuseUncaptured } from "./refusals.ts";

const maxKeyLength = 512;

export function isGuarded(native: object, methods: ReadonlySet<string> | undefined): boolean {
  if (methods === undefined) return true;
  const method: unknown = Reflect.get(native, "method");
  if (typeof method === "string") return methods.has(method);
  throw new TypeError(`${factoryName}: option methods: the request has no method`);
}

/** A key that was checked: as the caller sent it, and with its scope as the store has it. */
export interface CheckedKey {
  readonly key: string;
  readonly sentKey: string;
}

/** Throws a GuardError (400) for a key that a store could change or a reader confuse with another. */
export function checkIdempotencyKey(key: unknown, scope?: string): CheckedKey {
  if (key === undefined || key === null || key === "") {
    throw refusal("idempotency-key-missing");
  }
  if (typeof key !== "string") {
    // Every request would be refused: the integration is wrong, not the caller.
    if (appAnswers.isVainPromise(key))
      throw new TypeError("idempotencyGuard: option key must return the key, not a promise");
    throw keyInvalid(`is no string but a ${typeof key}`);
  }
  const stored = storedKey(scope, key);
  const longest = maxKeyLength - (stored.length - key.length);
  if (key.length > longest) throw keyInvalid(`has ${key.length} characters, over ${longest}`);
  // A lone surrogate has no UTF-8 form: an engine may replace it, and two keys become one. NUL ends a text in some.
  const fault = identifierFault(key);
  if (fault !== undefined) throw keyInvalid(fault);
  return { key: stored, sentKey: key };
}

/** No scope holds a colon, so keys of different scopes differ. */
function storedKey(scope: string | undefined, key: string): string {
  return scope === undefined ? key : `${scope}:${key}`;
}

/** What the option `key` gives, unchecked. Where 409 is `reserved` for "paid", one that the option throws becomes 500. */
export function readKey<T>(key: () => T, reserved: boolean): T {
  try {
    return key();
  } catch (error) {
    throw asUnclaimed(error, "key", reserved);
  }
}

/** What the option `fingerprint` gives, checked. Rejects with a GuardError: 503 when late; 500 as {@link readKey}. */
export async function readFingerprint(
  fingerprint: () => Awaitable<string>,
  { storeTimeoutMs, retryAfterSeconds }: Pick<ResolvedOwnerOptions, "storeTimeoutMs" | "retryAfterSeconds">,
  reserved: boolean,
): Promise<string> {
  try {
    const late = (): Error => fingerprintLate(storeTimeoutMs, retryAfterSeconds);
    return checkFingerprint(await inTime(fingerprint(), storeTimeoutMs, late));
  } catch (error) {
    throw asUnclaimed(error, "fingerprint", reserved);
  }
}

/** SHA-256 of the captured bytes, not of `req.rawBody`, which middlewares can write. Throws without (500): payloads would look alike. */
export function bodyFingerprint(subject: object): string {
  const bytes = capturedRawBody(subject);
  if (bytes !== undefined && bytes.length > 0) return hash("sha256", bytes, "base64url");
  return refuseUncaptured(subject);
}

const printable = /^[\x20-\x7e]{1,128}$/;

/** The option's fingerprint; throws a GuardError (500) for one that no store promises to keep. */
export function checkFingerprint(fingerprint: unknown): string {
  if (typeof fingerprint === "string" && printable.test(fingerprint)) return fingerprint;
  throw refusal("fingerprint-invalid");
}
