import { hash, randomUUID } from "node:crypto";
import { eventTrace, type EventTrace, type GuardError } from "@countersign/core";
import { escapeForLog, traced } from "@countersign/core/door";
import type { KeyAttempt, KeyRefusal } from "@countersign/idempotency/door";
import type { OwnedKey } from "@countersign/idempotency";
import { knownEventTypes } from "../envelope/envelope.ts";
import { webhookRefusal } from "../refusals.ts";
import {
  countFailures,
  FailedEvent,
  isWaitOnly,
  reportFailure,
  type EventAttempt,
  type EventState,
  type RoutedHandler,
} from "./failed-event.ts";
import { factoryName } from "./webhook-handler-options.ts";
import type { EventContext, EventDelivery, EventOutcome } from "./webhook-handler-types.ts";

const none: readonly RoutedHandler[] = [];

/** {@link claimEvent} as one trace on `countersign:event`, until the webhook knows the outcome. */
export async function claimTraced(state: EventState, delivery: EventDelivery): Promise<EventOutcome> {
  const { type, event_id: eventId, webhookId } = delivery;
  const context: EventTrace = {
    type: escapeForLog(type),
    isKnownType: knownEventTypes.includes(type),
    eventId: escapeForLog(eventId, 256),
    webhookId: escapeForLog(webhookId, 256),
    attempt: undefined,
  };
  const work = (): Promise<EventOutcome> => claimEvent(state, delivery, context);
  return traced(eventTrace, context, { work, outcomeOf: (outcome) => outcome });
}

/** Claims an event's key and runs its handlers, unless it is done. Does not reject. Writes the attempt's number into `trace`. */
export async function claimEvent(
  state: EventState,
  delivery: EventDelivery,
  trace?: Pick<EventTrace, "attempt">,
): Promise<EventOutcome> {
  const handlers = delivery.invalid === undefined ? state.handlersOf(delivery.type) : none;
  if (handlers.length === 0 && delivery.invalid === undefined) {
    state.onIgnored(delivery.type);
    return "ignored";
  }
  const claim: KeyAttempt = {
    key: state.keyPrefix + delivery.event_id,
    fingerprint: eventFingerprint(delivery),
    token: randomUUID(),
  };
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

function notAcquired(state: EventState, attempt: EventAttempt, refusal: KeyRefusal): EventOutcome {
  if (refusal.status !== "done") return "busy";
  const { key, fingerprint } = attempt.claim;
  if (refusal.fingerprint === fingerprint) return "duplicate";
  if (differsInType(refusal.fingerprint, fingerprint)) {
    return reportFailure(state, attempt, { outcome: "failed", error: webhookRefusal("event-id-reused") });
  }
  // Skipped all the same: nothing is handled twice because its time was written differently.
  const message = "is done, and came again as an event of another time";
  state.keys.alarm({ code: "event-id-reused", key, message });
  return "duplicate";
}

// A fingerprint has at most 128 characters, of which the time takes 30.
const shortType = /^[\w.:-]{1,64}$/;

/** The stored identity of an event besides its id: its time as received, and its type or the digest of a long one. */
function eventFingerprint({ type, event }: EventDelivery): string {
  const kept = shortType.test(type) ? type : `#${hash("sha256", type, "base64url")}`;
  return `${event?.timestamp.raw ?? "invalid"} ${kept}`;
}

/** Whether the two name different types. A record that was written by hand may name none. */
function differsInType(fingerprint: string, other: string): boolean {
  const [type, otherType] = [typeIn(fingerprint), typeIn(other)];
  return type !== undefined && otherType !== undefined && type !== otherType;
}

function typeIn(fingerprint: string): string | undefined {
  const space = fingerprint.indexOf(" ");
  return space === -1 ? undefined : fingerprint.slice(space + 1);
}

/** Runs and settles an event that this process owns. It is the handlers' context too: what most never ask for is made on demand. */
export class OwnedEvent implements EventContext {
  readonly webhookId: string;
  readonly attempt: number;
  readonly #state: EventState;
  readonly #attempt: EventAttempt;
  readonly #handlers: readonly RoutedHandler[];
  readonly #key: OwnedKey;
  #waits = 0;
  #inLastHandler = false;
  #failed = false;
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

  /** Aborts with `ownership`, or before it when the answer is due. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      if (this.#expired !== undefined) controller.abort(this.#expired);
      const { ownership } = this;
      const follow = (): void => controller.abort(ownership.reason);
      if (ownership.aborted) follow();
      else ownership.addEventListener("abort", follow, { once: true });
    }
    return this.#controller.signal;
  }

  /** Aborts when another attempt may own the event: unlike `signal`, not when its answer is due. */
  get ownership(): AbortSignal {
    return this.#key.signal;
  }

  /** Throws the reason when another attempt may own the event. Makes no signal while that is impossible. */
  assertOwned(): void {
    if (this.#key.lost || this.#failed) this.ownership.throwIfAborted();
  }

  // A getter of a function, so that a handler can destructure it.
  get completeIn(): (tx: unknown) => void | Promise<void> {
    return (tx) => this.#completeIn(tx);
  }

  get waitFor(): <T>(pending: PromiseLike<T>) => Promise<T> {
    return (pending) => this.#waitFor(pending);
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

  /** Answers the webhook although work goes on: the key stays owned, so no second attempt begins. A mere wait is no failure. */
  expire(): void {
    const waits = this.#waits > 0;
    const error = webhookRefusal(waits ? "event-not-begun" : "event-timed-out");
    this.#expired ??= error;
    this.#controller?.abort(error);
    if (!waits) reportFailure(this.#state, this.#attempt, { outcome: "timed-out", error });
    this.#answer?.(waits ? "busy" : "timed-out");
  }

  async #handle(answer: (outcome: EventOutcome) => void): Promise<void> {
    const key = this.#key;
    let failure: { readonly key: OwnedKey; readonly error: unknown } | undefined;
    try {
      this.#assertToBeHandled();
      for (let index = 0; index < this.#handlers.length; index += 1) {
        // Another attempt may own it by now: begin nothing more beside it.
        this.assertOwned();
        this.#inLastHandler = index === this.#handlers.length - 1;
        // oxlint-disable-next-line no-await-in-loop, typescript/no-unsafe-type-assertion -- in their order; each gets what it was registered for
        await this.#handlers[index]?.(this.#attempt.delivery.event as never, this);
      }
    } catch (error) {
      this.#failed = true;
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
      throw webhookRefusal(invalid.code, { message: invalid.detail });
    }
    const { deadLetters } = this.#state;
    if (deadLetters !== undefined && this.attempt > deadLetters.maxAttempts) {
      const times = `the event has failed ${deadLetters.maxAttempts} times`;
      throw webhookRefusal("attempts-exhausted", { message: `${times}, and its dead letter was not kept` });
    }
  }

  #completeIn(tx: unknown): void | Promise<void> {
    if (!this.#inLastHandler) {
      throw new TypeError(
        `${factoryName}: completeIn: another handler is yet to see the event; complete it there, not in onAny()`,
      );
    }
    // The turn of `latestOnly` may be another event's by now, whose writes this one would overwrite.
    this.assertOwned();
    return this.#key.completeIn(tx);
  }

  async #waitFor<T>(pending: PromiseLike<T>): Promise<T> {
    this.#waits += 1;
    try {
      return await pending;
    } catch (error) {
      throw isWaitOnly(error) ? error : webhookRefusal("event-not-begun", { cause: error });
    } finally {
      this.#waits -= 1;
    }
  }
}
