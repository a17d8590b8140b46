import type { GuardError } from "@countersign/core";
import { deliberate } from "@countersign/core/internal";
import type { OwnedKey } from "@countersign/idempotency";
import { webhookRefusal } from "../refusals.ts";
import { assertHandled } from "./event-dispatch.ts";
import { claimOf, notAcquired, type EventTrace, type KeyRefusal } from "./event-identity.ts";
import {
  countFailures,
  FailedEvent,
  reportFailure,
  type EventAttempt,
  type EventState,
  type RoutedHandler,
} from "./failed-event.ts";
import type { EventContext, EventDelivery, EventOutcome } from "./webhook-handler-types.ts";

const none: readonly RoutedHandler[] = [];

/** Claims an event's key and runs its handlers, unless it is done. Does not reject. Writes the attempt's number into `trace`. */
export async function claimEvent(
  state: EventState,
  delivery: EventDelivery,
  trace?: EventTrace,
): Promise<EventOutcome> {
  const handlers = delivery.invalid === undefined ? state.handlersOf(delivery.type) : none;
  if (handlers.length === 0 && delivery.invalid === undefined) {
    state.onIgnored(delivery.type);
    return "ignored";
  }
  const claim = claimOf(delivery, state.keyPrefix);
  const first = { delivery, claim, number: 1 };
  let key: OwnedKey | KeyRefusal;
  try {
    key = await state.keys.acquire(claim);
  } catch (error) {
    return reportFailure(state, first, { outcome: "unavailable", error });
  }
  if (key.status !== "acquired") return notAcquired(state, first, key);
  let failures = 0;
  try {
    if (state.deadLetters !== undefined) {
      failures = await countFailures(state.keys, claim.key, state.deadLetters.maxAttempts);
    }
  } catch (error) {
    await key.release();
    return reportFailure(state, first, { outcome: "unavailable", error });
  }
  const attempt = { delivery, claim, number: failures + 1 };
  if (trace !== undefined) trace.attempt = attempt.number;
  return await new OwnedEvent(state, attempt, { key, handlers }).outcome();
}

/** Runs and settles an event that this process owns. It is the handlers' context too: what most never ask for is made on demand. */
class OwnedEvent implements EventContext {
  readonly webhookId: string;
  readonly attempt: number;
  readonly #state: EventState;
  readonly #attempt: EventAttempt;
  readonly #handlers: readonly RoutedHandler[];
  readonly #key: OwnedKey;
  #expired: GuardError | undefined;
  #controller: AbortController | undefined;
  #answer: ((outcome: EventOutcome) => void) | undefined;

  constructor(
    state: EventState,
    attempt: EventAttempt,
    { key, handlers }: { readonly key: OwnedKey; readonly handlers: readonly RoutedHandler[] },
  ) {
    this.webhookId = attempt.delivery.webhookId;
    this.attempt = attempt.number;
    this.#state = state;
    this.#attempt = attempt;
    this.#handlers = handlers;
    this.#key = key;
  }

  /** Aborts when another attempt may own the event, or before that when the answer is due. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      if (this.#expired !== undefined) controller.abort(this.#expired);
      const { signal: ownership } = this.#key;
      const follow = (): void => controller.abort(ownership.reason);
      if (ownership.aborted) follow();
      else ownership.addEventListener("abort", follow, { once: true });
    }
    return this.#controller.signal;
  }

  /** Handles and settles the event; `timed-out` while that goes on after its time. Does not reject. */
  outcome(): Promise<EventOutcome> {
    return new Promise((resolve) => {
      this.#answer = resolve;
      void this.#handle(resolve);
      // Starts after the handler's synchronous part, during which no timer could fire.
      this.#state.deadlines.add(this);
    });
  }

  /** Answers the webhook although work goes on: the key stays owned, so no second attempt begins. */
  expire(): void {
    const error = webhookRefusal("event-timed-out");
    this.#expired ??= error;
    this.#controller?.abort(error);
    this.#answer?.(reportFailure(this.#state, this.#attempt, { outcome: "timed-out", error }));
  }

  async #handle(answer: (outcome: EventOutcome) => void): Promise<void> {
    const key = this.#key;
    let failure: { readonly key: OwnedKey; readonly error: unknown } | undefined;
    try {
      this.#assertToBeHandled();
      for (const handler of this.#handlers) {
        // Another attempt may own it by now: begin nothing more beside it.
        if (key.lost) key.signal.throwIfAborted();
        // oxlint-disable-next-line no-await-in-loop -- in their order; each gets what it was registered for
        assertHandled(await Reflect.apply(handler, undefined, [this.#attempt.delivery.event, this]));
      }
    } catch (error) {
      failure = { key, error };
    }
    let outcome: EventOutcome;
    if (failure === undefined) outcome = (await key.complete()) === undefined ? "done" : "in-doubt";
    else outcome = await new FailedEvent(this.#state, this.#attempt, failure).outcome();
    this.#state.deadlines.remove(this);
    answer(outcome);
  }

  #assertToBeHandled(): void {
    const { invalid } = this.#attempt.delivery;
    if (invalid !== undefined) {
      throw deliberate.mark(webhookRefusal(invalid.code, { message: invalid.detail }));
    }
    const { deadLetters } = this.#state;
    if (deadLetters !== undefined && this.attempt > deadLetters.maxAttempts) {
      const times = `the event has failed ${deadLetters.maxAttempts} times`;
      const message = `${times}, and its dead letter was not kept`;
      throw deliberate.mark(webhookRefusal("attempts-exhausted", { message }));
    }
  }
}
