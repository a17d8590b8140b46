import { hash, randomUUID } from "node:crypto";
import { eventTrace, GuardError, type EventTrace } from "@countersign/core";
import { escapeForLog, traced, type Deadlines } from "@countersign/core/door";
import type { KeyAttempt } from "@countersign/idempotency/door";
import type { OwnedKey } from "@countersign/idempotency";
import type { KeyRefusal } from "@countersign/idempotency/door";
import type { WebhookCode } from "../codes.ts";
import { knownEventTypes } from "../envelope/envelope-schema.ts";
import {
  attemptsExhausted,
  eventNotBegun,
  eventTimedOut,
  FailedEvent,
  idReused,
  isWaitOnly,
  reportFailure,
  type EventAttempt,
  type FailureState,
} from "./failed-event.ts";
import { factoryName } from "./webhook-handler-options.ts";
import type { EventContext, EventDelivery, EventHandler, EventOutcome } from "./webhook-handler-types.ts";

/** What all events of one handler share. */
export interface EventState extends OwnedEventState {
  readonly keyPrefix: string;
  /** Empty for a type whose events are ignored. */
  readonly handlersOf: (type: string) => readonly RoutedHandler[];
  /** Hears of each event whose type is ignored. */
  readonly onIgnored: (type: string) => void;
}

const none: readonly RoutedHandler[] = [];

/** {@link claimEvent} as one trace on `countersign:event`, for as long as the webhook waits for its outcome. */
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

/**
 * Handles one event unless it is done: claims its key, and hands it to its handlers. Does not reject. Writes the number
 * of the attempt into `trace`.
 */
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
  if (state.deadLetters === undefined) {
    if (trace !== undefined) trace.attempt = first.number;
    return await new OwnedEvent(state, first, { key, handlers }).outcome();
  }
  let failures: number;
  try {
    failures = await state.deadLetters.failures.count(claim.key);
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
    return reportFailure(state, attempt, { outcome: "failed", error: idReused() });
  }
  // Skipped all the same: nothing is handled twice because its time was written in another way.
  const message = "is done, and came again as an event of another time";
  state.keys.alarm({ code: "event-id-reused", key, message });
  return "duplicate";
}

// A fingerprint has at most 128 characters, of which the time takes 30.
const shortType = /^[\w.:-]{1,64}$/;

/** What is kept of an event beside its id: its time as received, and its type or the digest of a long one. */
function eventFingerprint({ type, event }: EventDelivery): string {
  const kept = shortType.test(type) ? type : `#${hash("sha256", type, "base64url")}`;
  return `${event?.timestamp.raw ?? "invalid"} ${kept}`;
}

/** Whether both name a type, and not the same one. Who writes to the store by hand may name none. */
function differsInType(fingerprint: string, other: string): boolean {
  const [type, otherType] = [typeIn(fingerprint), typeIn(other)];
  return type !== undefined && otherType !== undefined && type !== otherType;
}

function typeIn(fingerprint: string): string | undefined {
  const space = fingerprint.indexOf(" ");
  return space === -1 ? undefined : fingerprint.slice(space + 1);
}

/** A handler of any event: each is only given what it was registered for. */
export type RoutedHandler = EventHandler<never>;

/** What the events that this process owns share. */
export interface OwnedEventState extends FailureState {
  readonly deadlines: Deadlines;
}

/**
 * An event that this process owns: its handlers, within their time or not, and its end. It is the context that the handlers get:
 * what most of them never ask for is made when one does.
 */
export class OwnedEvent implements EventContext {
  readonly webhookId: string;
  readonly attempt: number;
  readonly #state: OwnedEventState;
  readonly #attempt: EventAttempt;
  readonly #handlers: readonly RoutedHandler[];
  readonly #key: OwnedKey;
  /** How many waits of the handler are under way, see waitFor(). */
  #waits = 0;
  #inLastHandler = false;
  #failed = false;
  #expired: GuardError | undefined;
  #controller: AbortController | undefined;
  #answer: ((outcome: EventOutcome) => void) | undefined;

  constructor(
    state: OwnedEventState,
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

  /** Aborts with `ownership`, or before it when the answer is due. Made when somebody asks for it: most handlers never do. */
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

  /** Aborts when the event is not this attempt's any more: unlike `signal`, not when its answer is due. */
  get ownership(): AbortSignal {
    return this.#key.signal;
  }

  /** Throws the reason when the event is not this attempt's any more. Makes no signal for an event that nobody can have taken. */
  assertOwned(): void {
    if (this.#key.lost || this.#failed) this.ownership.throwIfAborted();
  }

  // A function of its own, so that a handler can take it out of the object. Made when somebody asks for it.
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
      // The time begins behind what the first handler does at once, during which no timer could tell it anything.
      this.#state.deadlines.add(this);
    });
  }

  /**
   * The answer is due, but the work goes on: until it ends, or is given up, its key stays owned, so that no second attempt at the
   * event begins beside it. One that has only waited has not failed.
   */
  expire(): void {
    const waits = this.#waits > 0;
    const error = waits ? eventNotBegun() : eventTimedOut();
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
        // Another attempt may have it by now: nothing more is begun beside it.
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
      throw new GuardError<WebhookCode>({ status: 400, code: invalid.code, message: invalid.detail });
    }
    const { deadLetters } = this.#state;
    // Its dead letter could not be kept the last time.
    if (deadLetters !== undefined && this.attempt > deadLetters.maxAttempts) {
      throw attemptsExhausted(deadLetters.maxAttempts);
    }
  }

  #completeIn(tx: unknown): void | Promise<void> {
    if (!this.#inLastHandler) {
      throw new TypeError(
        `${factoryName}: completeIn: another handler is yet to see the event; complete it there, not in onAny()`,
      );
    }
    // The turn of `latestOnly` may be another event's by now: what it wrote would be written over.
    this.assertOwned();
    return this.#key.completeIn(tx);
  }

  async #waitFor<T>(pending: PromiseLike<T>): Promise<T> {
    this.#waits += 1;
    try {
      return await pending;
    } catch (error) {
      throw isWaitOnly(error) ? error : eventNotBegun(error);
    } finally {
      this.#waits -= 1;
    }
  }
}
