import { GuardError, isGuardError } from "@countersign/guard";

/** The event's handler has not begun: it waits for its turn, or did not get what it needs (`cause`). Never a failure of the event. */
export function eventNotBegun(cause?: unknown): GuardError {
  return new GuardError({
    status: 503,
    code: "event-not-begun",
    message: "the event's handler had to wait and has not begun",
    cause,
  });
}

/** The answer is due although the event's handler still runs. */
export function eventTimedOut(): GuardError {
  return new GuardError({
    status: 503,
    code: "event-timed-out",
    message: "the event's handler did not end in time",
  });
}

/** Whether an event has waited, and nothing is wrong with what it waited for. */
export function isWaitOnly(error: unknown): boolean {
  return isGuardError(error) && error.code === "event-not-begun" && error.cause === undefined;
}

/** The dead letter of an event could not be kept the last time. */
export function attemptsExhausted(maxAttempts: number): GuardError {
  return new GuardError({
    status: 500,
    code: "attempts-exhausted",
    message: `the event has failed ${maxAttempts} times, and its dead letter was not kept`,
  });
}

// The second is that of withPostgresTransaction() of store-postgres: the handler has waited for a connection, and did nothing.
const unavailable: ReadonlySet<string> = new Set(["idempotency-store-unavailable", "transaction-not-begun"]);

/** The outcome of an event that has not failed itself: it had to wait, is not this attempt's any more, or the store did not answer. */
export function ownershipFault(error: unknown): "busy" | "unavailable" | undefined {
  if (!isGuardError(error)) return undefined;
  if (error.code === "idempotency-lost" || error.code === "event-not-begun") return "busy";
  return unavailable.has(error.code) ? "unavailable" : undefined;
}
