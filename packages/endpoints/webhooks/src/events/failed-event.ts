import { randomUUID } from "node:crypto";
import { GuardError, isGuardError, quoteForLog } from "@countersign/core";
import { publishFailure } from "@countersign/core/door";
import { failureFingerprint, failureKey, type KeyAttempt } from "@countersign/idempotency/door";
import type { IdempotencyKeys, OwnedKey } from "@countersign/idempotency";
import type { WebhookCode } from "../codes.ts";
import { factoryName, type DeadLetters } from "./webhook-handler-options.ts";
import type { EventDelivery, EventFailure, EventOutcome } from "./webhook-handler-types.ts";

/** When a failing event is given up, by its failures so far. */
interface CountedDeadLetters extends DeadLetters {
  readonly failures: FailureCounts;
}

/** What all events of one handler share when one of them fails. */
export interface FailureState {
  readonly keys: IdempotencyKeys;
  readonly deadLetters: CountedDeadLetters | undefined;
  readonly onError: ((failure: EventFailure) => unknown) | undefined;
}

/** One attempt at one event, as `maxAttempts` counts them. */
export interface EventAttempt {
  readonly delivery: EventDelivery;
  readonly claim: KeyAttempt;
  /** 1 + the failures before this attempt. */
  readonly number: number;
}

/** An owned event whose attempt failed: it ends as done after all, given back, or given up. */
export class FailedEvent {
  readonly #state: FailureState;
  readonly #attempt: EventAttempt;
  readonly #error: unknown;
  #key: OwnedKey;

  constructor(
    state: FailureState,
    attempt: EventAttempt,
    { key, error }: { readonly key: OwnedKey; readonly error: unknown },
  ) {
    this.#state = state;
    this.#attempt = attempt;
    this.#key = key;
    this.#error = error;
  }

  /** Does not reject. */
  async outcome(): Promise<EventOutcome> {
    // What failed behind a commit has taken effect: the event is done.
    if (this.#key.inTransaction && (await this.#key.isDone())) {
      this.#report("done");
      return this.#complete("done");
    }
    // Neither a store that is down, nor a lost lease, nor a wait is the event's own failure.
    const fault = this.#key.lost ? "busy" : ownershipFault(this.#error);
    const { deadLetters } = this.#state;
    if (fault !== undefined || deadLetters === undefined) return this.#giveBack(fault ?? "failed");
    const { claim, number } = this.#attempt;
    const { failures, maxAttempts } = deadLetters;
    if (number <= maxAttempts) await failures.record(claim.key, number);
    return number < maxAttempts ? this.#giveBack("failed") : this.#giveUp(deadLetters);
  }

  async #complete(outcome: "done" | "dead-lettered"): Promise<EventOutcome> {
    return (await this.#key.complete()) === undefined ? outcome : "in-doubt";
  }

  async #giveBack(outcome: EventOutcome): Promise<EventOutcome> {
    if (!isWaitOnly(this.#error)) this.#report(outcome);
    await this.#key.release();
    return outcome;
  }

  /** The event is done once its dead letter is kept. */
  async #giveUp({ onDeadLetter }: DeadLetters): Promise<EventOutcome> {
    const elsewhere = this.#key.inTransaction ? await this.#ownAgain() : undefined;
    if (elsewhere !== undefined) return this.#report(elsewhere);
    try {
      await onDeadLetter(failureOf(this.#attempt, { outcome: "dead-lettered", error: this.#error }));
    } catch (error) {
      const { key } = this.#attempt.claim;
      const message = "has an onDeadLetter() that failed";
      this.#state.keys.alarm({ code: "dead-letter-failed", key, message, error });
      return this.#giveBack("failed");
    }
    this.#report("dead-lettered");
    return this.#complete("dead-lettered");
  }

  /**
   * Only behind the end of the handler's transaction, for which the release waits, is it certain that nothing was committed. Gives
   * the outcome when the event is not this attempt's after that.
   */
  async #ownAgain(): Promise<EventOutcome | undefined> {
    await this.#key.release();
    try {
      const acquired = await this.#state.keys.acquire({ ...this.#attempt.claim, token: randomUUID() });
      if (acquired.status !== "acquired") return acquired.status === "done" ? "done" : "busy";
      this.#key = acquired;
      return undefined;
    } catch {
      return "unavailable";
    }
  }

  #report(outcome: EventOutcome): EventOutcome {
    return reportFailure(this.#state, this.#attempt, { outcome, error: this.#error });
  }
}

interface Failed {
  readonly outcome: EventOutcome;
  readonly error: unknown;
}

/** Tells `onError` of a failed attempt, or publishes it, or writes it on stderr. Gives the outcome, whatever the hook does. */
export function reportFailure(
  { keys, onError }: FailureState,
  attempt: EventAttempt,
  failed: Failed,
): EventOutcome {
  const { key } = attempt.claim;
  if (onError === undefined) {
    publishFailure({
      guard: factoryName,
      code: "event-failed",
      message: `key ${quoteForLog(key)} has a failed attempt, its outcome: ${failed.outcome}`,
      error: failed.error,
    });
  } else {
    const callHook = async (): Promise<void> => {
      try {
        await onError(failureOf(attempt, failed));
      } catch (error) {
        keys.alarm({ code: "on-error-failed", key, message: "has an onError() that failed", error });
      }
    };
    // Nobody waits for it.
    void callHook();
  }
  return failed.outcome;
}

/** What the hooks are called with. */
function failureOf({ delivery, number }: EventAttempt, failed: Failed): EventFailure {
  return { ...delivery, attempt: number, ...failed };
}

/**
 * Counts the failures of an event where its key is: durable, and known to every process. Failure n is a done key of its own;
 * one that was being written when the process died counts as well.
 */
export class FailureCounts {
  readonly #keys: IdempotencyKeys;
  readonly #max: number;

  constructor(keys: IdempotencyKeys, max: number) {
    this.#keys = keys;
    this.#max = max;
  }

  /** How many failures are known, at most `max`. Rejects when the store does not say. */
  async count(key: string): Promise<number> {
    for (let known = 0; known < this.#max; known += 1) {
      // oxlint-disable-next-line no-await-in-loop -- the first that is missing ends the count
      if ((await this.#keys.read(failureKey(key, known + 1))) === undefined) return known;
    }
    return this.#max;
  }

  /** Records a failure. One that the store does not take is not counted: the event is tried once more than was asked for. */
  async record(key: string, failure: number): Promise<void> {
    try {
      const fingerprint = failureFingerprint;
      const attempt = { key: failureKey(key, failure), fingerprint, token: randomUUID() };
      const acquired = await this.#keys.acquire(attempt);
      if (acquired.status === "acquired") await acquired.complete();
    } catch {
      // acquire() has seen to it that no claim is left behind.
    }
  }
}

/** The event's handler has not begun: it waits for its turn, or did not get what it needs (`cause`). Never a failure of the event. */
export function eventNotBegun(cause?: unknown): GuardError<WebhookCode> {
  return new GuardError<WebhookCode>({
    status: 503,
    code: "event-not-begun",
    message: "the event's handler had to wait and has not begun",
    cause,
  });
}

/** The answer is due although the event's handler still runs. */
export function eventTimedOut(): GuardError<WebhookCode> {
  return new GuardError<WebhookCode>({
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
export function attemptsExhausted(maxAttempts: number): GuardError<WebhookCode> {
  return new GuardError<WebhookCode>({
    status: 500,
    code: "attempts-exhausted",
    message: `the event has failed ${maxAttempts} times, and its dead letter was not kept`,
  });
}

// The second is that of withPostgresTransaction() of store-postgres: the handler has waited for a connection, and did nothing.
const unavailable: ReadonlySet<string> = new Set(["idempotency-store-unavailable", "transaction-not-begun"]);

/** The outcome of an event that has not failed itself: it had to wait, is not this attempt's any more, or the store did not answer. */
function ownershipFault(error: unknown): "busy" | "unavailable" | undefined {
  if (!isGuardError(error)) return undefined;
  if (error.code === "idempotency-lost" || error.code === "event-not-begun") return "busy";
  return unavailable.has(error.code) ? "unavailable" : undefined;
}

/** The event has the id of another one: to acknowledge it as handled would lose it. */
export function idReused(): GuardError<WebhookCode> {
  return new GuardError<WebhookCode>({
    status: 400,
    code: "event-id-reused",
    message: "the event has the id of one that is done and has another type",
  });
}
