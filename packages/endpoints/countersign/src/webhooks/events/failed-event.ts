import { randomUUID } from "node:crypto";
import { quoteForLog, type GuardError } from "@countersign/core";
import { appAnswers, publishFailure, publishThrown, type Deadlines } from "@countersign/core/internal";
import { failureCounts, type KeyAttempt } from "@countersign/idempotency/internal";
import type { IdempotencyKeys } from "@countersign/idempotency";
import type { InvalidWebhookEvent } from "../envelope/events.ts";
import { webhookRefusal, type WebhookCode } from "../refusals.ts";
import type { ResolvedWebhookHandlerOptions } from "./webhook-handler-options.ts";
import type {
  DeadLetterHook,
  EventDelivery,
  EventFailure,
  EventHandler,
  EventOutcome,
} from "./webhook-handler-types.ts";

/** A handler of any event: each only gets what it was registered for. */
export type RoutedHandler = EventHandler<never, never>;

/** Where failed attempts are told. */
export interface Reporting extends Pick<ResolvedWebhookHandlerOptions, "onError"> {
  readonly factory: string;
  readonly keys: Pick<IdempotencyKeys, "alarm">;
}

export interface EventState
  extends Reporting, Pick<ResolvedWebhookHandlerOptions, "owner" | "keyPrefix" | "deadLetters"> {
  readonly recovery: "hold" | "rerun";
  /** Empty for a type whose events are ignored. */
  readonly handlersOf: (type: string) => readonly RoutedHandler[];
  readonly onIgnored: (type: string) => void;
  readonly deadlines: Deadlines;
}

/** One attempt at one event, as `maxAttempts` counts them. */
export interface EventAttempt {
  readonly delivery: EventDelivery;
  readonly claim: KeyAttempt;
  /** 1 + the failures before this attempt. */
  readonly number: number;
}

export type MalformedAttempt = EventAttempt & {
  readonly delivery: { readonly invalid: InvalidWebhookEvent };
};

/** Reports a failed attempt to `onError`, as a notice, or on stderr. Returns the outcome, whatever the hook does. */
export function reportFailure(
  { factory, keys, onError }: Reporting,
  attempt: EventAttempt,
  failed: Pick<EventFailure, "outcome" | "error">,
): EventOutcome {
  const { key } = attempt.claim;
  publishThrown(failed.error);
  if (onError === undefined) {
    publishFailure({
      guard: factory,
      code: "event-failed",
      message: `key ${quoteForLog(key)} has a failed attempt, its outcome: ${failed.outcome}`,
      error: failed.error,
    });
  } else {
    const message = "has an onError() that failed";
    const failing = (error: unknown): void => keys.alarm({ code: "on-error-failed", key, message, error });
    // Nobody waits for it.
    void callHook(onError, failureOf(attempt, failed), failing);
  }
  return failed.outcome;
}

/** What is wrong with a malformed event, as an error. */
export function malformedError({ code, detail }: InvalidWebhookEvent): GuardError<WebhookCode> {
  return webhookRefusal(code, { message: detail });
}

/**
 * Gives up a malformed event, which no attempt could read, so that the service stops sending it. Does not reject. `onDeadLetter` keeps the
 * event before it is acknowledged: `failed` if the hook fails. Without the hook an alarm says what was dropped.
 */
export async function giveUpMalformed(
  reporting: Reporting,
  attempt: MalformedAttempt,
  onDeadLetter: DeadLetterHook | undefined,
): Promise<EventOutcome> {
  const { invalid } = attempt.delivery;
  const error = malformedError(invalid);
  if (onDeadLetter !== undefined) {
    const isKept = await keepDeadLetter(reporting, { attempt, error, onDeadLetter });
    return reportFailure(reporting, attempt, { outcome: isKept ? "dead-lettered" : "failed", error });
  }
  const { key } = attempt.claim;
  const message = `is of a malformed event, which was acknowledged and not handled: ${invalid.detail}`;
  reporting.keys.alarm({ code: "event-malformed", key, message, error });
  // Without the hook the alarm has told it.
  if (reporting.onError !== undefined) reportFailure(reporting, attempt, { outcome: "dead-lettered", error });
  return "dead-lettered";
}

/** Resolves to whether the hook has kept the event. Does not reject: a failing hook is an alarm. */
export async function keepDeadLetter(
  { keys }: Reporting,
  {
    attempt,
    error,
    onDeadLetter,
  }: { readonly attempt: EventAttempt; readonly error: unknown; readonly onDeadLetter: DeadLetterHook },
): Promise<boolean> {
  try {
    assertHandled(await onDeadLetter(failureOf(attempt, { outcome: "dead-lettered", error })));
    return true;
  } catch (fault) {
    const { key } = attempt.claim;
    const message = "has an onDeadLetter() that failed";
    keys.alarm({ code: "dead-letter-failed", key, message, error: fault });
    return false;
  }
}

/** Throws for a handler that returned its failure: acknowledged as handled, the event would be lost. */
export function assertHandled(returned: unknown): void {
  appAnswers.throwFailure(
    returned,
    "a handler of events returned a Response, which nobody sends: throw an Error to get the event again",
  );
}

/** Does not reject: `failing` gets what the hook threw. */
export async function callHook(
  hook: (failure: EventFailure) => unknown,
  failure: EventFailure,
  failing: (error: unknown) => void,
): Promise<void> {
  try {
    await hook(failure);
  } catch (error) {
    failing(error);
  }
}

export function failureOf(
  { delivery, number }: EventAttempt,
  failed: Pick<EventFailure, "outcome" | "error">,
): EventFailure {
  return { ...delivery, attempt: number, ...failed };
}

/** Counts failures up to `max`. Failure n is a key beside the event's; a claim that a crash left counts. Rejects without the store. */
export async function countFailures(keys: IdempotencyKeys, key: string, max: number): Promise<number> {
  for (let known = 0; known < max; known += 1) {
    // oxlint-disable-next-line no-await-in-loop -- the first that is missing ends the count
    if ((await keys.read(failureCounts.of(key, known + 1).key)) === undefined) return known;
  }
  return max;
}

/** Records a failure. One that the store does not take is not counted: the event runs once more than `maxAttempts`. */
export async function recordFailure(keys: IdempotencyKeys, key: string, failure: number): Promise<void> {
  try {
    const acquired = await keys.acquire({ ...failureCounts.of(key, failure), token: randomUUID() });
    if (acquired.status === "acquired") await acquired.complete();
  } catch {
    // acquire() gives a claim back that it does not return.
  }
}
