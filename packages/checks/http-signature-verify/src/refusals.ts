import { GuardError, OptionError, quoteForLog } from "@countersign/core";
import { unanswered } from "@countersign/core/internal";
import { MessageSignatureError } from "@countersign/http-message-signatures";
import type { HttpSignatureCode } from "./codes.ts";

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

/** Thrown in place of what `policy` threw, or for an answer that is no policy. */
export function policyUnusable(cause: unknown): GuardError<HttpSignatureCode> {
  // Only the message of an option's own check is known to hold nothing of the app.
  const fault = cause instanceof OptionError ? `: ${cause.message}` : "";
  const message = `httpSignatureVerify: option policy gave no usable answer${fault}`;
  return new GuardError<HttpSignatureCode>(unanswered("policy-unusable", message, cause));
}

/** The refusal (401) of a signature for which there is no policy. */
export function policyUnknown(cause: Error): GuardError<HttpSignatureCode> {
  return refusal("policy-unknown", "there is no policy for this signature", cause);
}

/** Thrown for what a key store returned and nothing can verify by. `fault` shows nothing of the key. */
export function keyUnusable(keyid: string, fault: string, cause: unknown): GuardError<HttpSignatureCode> {
  const message = `httpSignatureVerify: the key store's key ${quoteForLog(keyid)} cannot be used: ${fault}`;
  return new GuardError<HttpSignatureCode>(unanswered("key-unusable", message, cause));
}

/** The 401 of the engine's verdict; other errors as they are. */
export function refusalOf(error: unknown): unknown {
  return error instanceof MessageSignatureError ? refusal(error.code, error.message, error) : error;
}
