import { GuardError, identifierFault, isPromiseLike } from "@countersign/guard";
import { storedKey } from "./scope.ts";

const maxKeyLength = 512;

/**
 * The key as the option `key` returned it, behind its scope; throws a GuardError (400) on anything that a store cannot keep as it
 * is, or that a reader could take for another key.
 */
export function checkIdempotencyKey(key: unknown, scope?: string): string {
  if (key === undefined || key === null || key === "") {
    throw new GuardError({
      status: 400,
      code: "idempotency-key-missing",
      message: "the request has no idempotency key",
    });
  }
  if (typeof key !== "string") {
    // Every request would be refused: the integration is wrong, not the caller.
    if (isPromiseLike(key))
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

function keyInvalid(fault: string): GuardError {
  return new GuardError({
    status: 400,
    code: "idempotency-key-invalid",
    message: `the idempotency key ${fault}`,
  });
}
