import { randomUUID } from "node:crypto";
import { GuardError, isPromiseLike } from "@countersign/guard";
import type { Awaitable, KeyAttempt, KeyRefusal, OwnedKey } from "@countersign/idempotency-guard";
import type { EventState } from "./event-attempt.ts";
import { differsInType, eventFingerprint } from "./event-fingerprint.ts";
import { reportFailure } from "./event-report.ts";
import { EventRun } from "./event-run.ts";
import type { RoutedHandler } from "./event-routes.ts";
import type { EventDelivery, EventOutcome } from "./webhook-handler-types.ts";

/** Handles one event unless it is done: claims it, runs its handlers and settles it. Neither throws nor rejects. */
export function handleEvent(state: EventState, delivery: EventDelivery): Awaitable<EventOutcome> {
  const handlers = delivery.invalid === undefined ? state.routes.find(delivery.type) : none;
  if (handlers.length === 0 && delivery.invalid === undefined) {
    state.ignored.notice(delivery.type);
    return "ignored";
  }
  return new EventHandling(state, delivery, handlers).start();
}

const none: readonly RoutedHandler[] = [];

class EventHandling {
  readonly #state: EventState;
  readonly #delivery: EventDelivery;
  readonly #handlers: readonly RoutedHandler[];
  readonly #claim: KeyAttempt;

  constructor(state: EventState, delivery: EventDelivery, handlers: readonly RoutedHandler[]) {
    this.#state = state;
    this.#delivery = delivery;
    this.#handlers = handlers;
    this.#claim = {
      key: state.keyPrefix + delivery.event_id,
      fingerprint: eventFingerprint(delivery),
      token: randomUUID(),
    };
  }

  start(): Awaitable<EventOutcome> {
    try {
      const acquired = this.#state.keys.acquire(this.#claim);
      return isPromiseLike(acquired) ? this.#admitLater(acquired) : this.#admit(acquired);
    } catch (error) {
      return this.#unavailable(error);
    }
  }

  async #admitLater(pending: Promise<OwnedKey | KeyRefusal>): Promise<EventOutcome> {
    let acquired: OwnedKey | KeyRefusal;
    try {
      acquired = await pending;
    } catch (error) {
      return this.#unavailable(error);
    }
    return this.#admit(acquired);
  }

  #admit(acquired: OwnedKey | KeyRefusal): Awaitable<EventOutcome> {
    if (acquired.status === "acquired") return this.#own(acquired);
    if (acquired.status !== "done") return "busy";
    if (acquired.fingerprint === this.#claim.fingerprint) return "duplicate";
    // Another event: to acknowledge it as handled would lose it.
    if (differsInType(acquired.fingerprint, this.#claim.fingerprint))
      return this.#notRun("failed", idReused());
    this.#noticeReuse();
    return "duplicate";
  }

  #own(owned: OwnedKey): Awaitable<EventOutcome> {
    const { deadLetters } = this.#state;
    if (deadLetters === undefined) return this.#run(owned, 0);
    let failures: Awaitable<number>;
    try {
      failures = deadLetters.failures.count(this.#claim.key);
    } catch (error) {
      return this.#leave(owned, error);
    }
    return isPromiseLike(failures) ? this.#runLater(owned, failures) : this.#run(owned, failures);
  }

  async #runLater(owned: OwnedKey, pending: Promise<number>): Promise<EventOutcome> {
    let failures: number;
    try {
      failures = await pending;
    } catch (error) {
      return this.#leave(owned, error);
    }
    return this.#run(owned, failures);
  }

  #run(owned: OwnedKey, failures: number): Awaitable<EventOutcome> {
    const attempt = { delivery: this.#delivery, claim: this.#claim, number: failures + 1 };
    return new EventRun(this.#state, attempt, { handlers: this.#handlers, owned }).start();
  }

  async #leave(owned: OwnedKey, error: unknown): Promise<EventOutcome> {
    await owned.release();
    return this.#unavailable(error);
  }

  #unavailable(error: unknown): EventOutcome {
    return this.#notRun("unavailable", error);
  }

  #notRun(outcome: EventOutcome, error: unknown): EventOutcome {
    const attempt = { delivery: this.#delivery, claim: this.#claim, number: 1 };
    reportFailure(this.#state, attempt, outcome, error);
    return outcome;
  }

  // Skipped all the same: nothing is handled twice because its time was written in another way.
  #noticeReuse(): void {
    const message = "is done, and came again as an event of another time";
    this.#state.keys.alarm({ code: "event-id-reused", key: this.#claim.key, message });
  }
}

function idReused(): GuardError {
  return new GuardError({
    status: 400,
    code: "event-id-reused",
    message: "the event has the id of one that is done and has another type",
  });
}
