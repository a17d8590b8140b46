import { isPromiseLike, publishFailure, quoteForLog } from "@countersign/guard";
import { failureOf, type EventAttempt, type EventState } from "./event-attempt.ts";
import { factory } from "./webhook-handler-options.ts";
import type { EventOutcome } from "./webhook-handler-types.ts";

/** Tells `onError` of a failed attempt, or publishes it, or writes it on stderr. Whatever the hook does, the answer stays as it is. */
export function reportFailure(
  { keys, onError }: EventState,
  attempt: EventAttempt,
  outcome: EventOutcome,
  error: unknown,
): void {
  const { key } = attempt.claim;
  if (onError === undefined) {
    publishFailure({
      guard: factory,
      code: "event-failed",
      message: `key ${quoteForLog(key)} has a failed attempt, its outcome: ${outcome}`,
      error,
    });
    return;
  }
  const hookFailed = (hookError: unknown): void => {
    keys.alarm({ code: "on-error-failed", key, message: "has an onError() that failed", error: hookError });
  };
  try {
    const returned = onError(failureOf(attempt, outcome, error));
    // oxlint-disable-next-line promise/prefer-await-to-then -- nobody waits for it
    if (isPromiseLike(returned)) returned.then(undefined, hookFailed);
  } catch (hookError) {
    hookFailed(hookError);
  }
}
