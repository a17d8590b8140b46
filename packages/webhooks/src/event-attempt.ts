import type { IdempotencyKeys, KeyAttempt } from "@countersign/idempotency-guard";
import type { EventDeadlines } from "./event-deadlines.ts";
import type { EventFailures } from "./event-failures.ts";
import type { EventRoutes } from "./event-routes.ts";
import type { IgnoredTypes } from "./ignored-types.ts";
import type { DeadLetters } from "./webhook-handler-options.ts";
import type { EventDelivery, EventFailure, EventOutcome } from "./webhook-handler-types.ts";

/** When a failing event is given up, by its failures so far. */
export interface CountedDeadLetters extends DeadLetters {
  readonly failures: EventFailures;
}

/** What all events of one handler share. */
export interface EventState {
  readonly keys: IdempotencyKeys;
  readonly keyPrefix: string;
  readonly routes: EventRoutes;
  readonly ignored: IgnoredTypes;
  readonly deadlines: EventDeadlines;
  readonly deadLetters: CountedDeadLetters | undefined;
  readonly onError: ((failure: EventFailure) => unknown) | undefined;
}

/** One attempt at one event. */
export interface EventAttempt {
  readonly delivery: EventDelivery;
  readonly claim: KeyAttempt;
  /** 1 + the failures before this attempt. */
  readonly number: number;
}

/** What the hooks are told. */
export function failureOf(
  { delivery, number }: EventAttempt,
  outcome: EventOutcome,
  error: unknown,
): EventFailure {
  return { ...delivery, attempt: number, outcome, error };
}
