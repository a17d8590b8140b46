import { isGuardError } from "@countersign/core";

/**
 * What a check has thrown. Nest 12 hands the refusal of a middleware below 500 on as an exception of its own, with the same status and the
 * refusal as its cause. Returns every other error as it is.
 */
export function thrownByCheck(error: unknown): unknown {
  if (!(error instanceof Error) || isGuardError(error)) return error;
  const { cause, getStatus }: { readonly cause?: unknown; readonly getStatus?: unknown } = error;
  if (!isGuardError(cause) || typeof getStatus !== "function") return error;
  return Reflect.apply(getStatus, error, []) === cause.status ? cause : error;
}
