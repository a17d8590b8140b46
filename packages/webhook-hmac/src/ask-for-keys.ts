import type { KeyObject } from "node:crypto";
import { GuardError, isPromiseLike, withDeadline, type GuardRequest } from "@countersign/guard";
import { importSecrets, type SecretsFunction } from "./options.ts";
import type { SecretEncoding } from "./secret.ts";

interface Question {
  readonly secrets: SecretsFunction;
  readonly secretEncoding: SecretEncoding;
  readonly timeoutMs: number;
}

/** The keys that a secrets function gives for a request. Throws or rejects with a GuardError 503 when they are unusable. */
export function askForKeys(
  req: GuardRequest,
  { secrets, secretEncoding, timeoutMs }: Question,
): readonly KeyObject[] | Promise<readonly KeyObject[]> {
  try {
    const answer = secrets(req);
    if (!isPromiseLike(answer)) return importSecrets(answer, secretEncoding);
    return importLater(Promise.resolve(answer), secretEncoding, timeoutMs);
  } catch (error) {
    throw unavailable(error);
  }
}

async function importLater(
  answer: Promise<readonly string[]>,
  encoding: SecretEncoding,
  timeoutMs: number,
): Promise<readonly KeyObject[]> {
  const late = (): Error => new Error(`the secrets function did not answer within ${timeoutMs} ms`);
  try {
    return importSecrets(await withDeadline(answer, timeoutMs, late), encoding);
  } catch (error) {
    throw unavailable(error);
  }
}

function unavailable(cause: unknown): GuardError {
  return new GuardError({
    status: 503,
    code: "secrets-unavailable",
    message: "the secrets function gave no usable secrets",
    headers: { "Retry-After": "5" },
    cause,
  });
}
