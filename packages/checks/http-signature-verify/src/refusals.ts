import { GuardError } from "@countersign/core";
import { unanswered } from "@countersign/core/door";
import { MessageSignatureError } from "@countersign/http-message-signatures";
import type { HttpSignatureCode } from "./options.ts";

/** Thrown in place of a store's own error. */
export function unavailable(
  code: HttpSignatureCode,
  name: string,
): (cause: unknown) => GuardError<HttpSignatureCode> {
  const message = `httpSignatureVerify: ${name} gave no usable answer`;
  return (cause) => new GuardError<HttpSignatureCode>(unanswered(code, message, cause));
}

export function refusal(code: HttpSignatureCode, what: string, cause?: Error): GuardError<HttpSignatureCode> {
  const message = `httpSignatureVerify: ${what}`;
  return new GuardError<HttpSignatureCode>({ status: 401, code, message, cause });
}

/** The 401 of the engine's verdict; other errors as they are. */
export function refusalOf(error: unknown): unknown {
  return error instanceof MessageSignatureError ? refusal(error.code, error.message, error) : error;
}
