import type { GuardError } from "@countersign/core";
import { deliberate } from "@countersign/core/internal";
import type { LeasedRun, LeaseEnd, Performed, WorkEnd } from "@countersign/idempotency/internal";
import { webhookRefusal } from "../refusals.ts";
import { claimOf, notAcquired, type EventTrace } from "./event-identity.ts";
import {
  assertHandled,
  countFailures,
  giveUpMalformed,
  keepDeadLetter,
  malformedError,
  recordFailure,
  reportFailure,
  type EventAttempt,
  type EventState,
  type RoutedHandler,
} from "./failed-event.ts";
import type { EventContext, EventDelivery, EventOutcome } from "./webhook-handler-types.ts";

const none: readonly RoutedHandler[] = [];

/** Handles an event once, by the lease of its key. Does not reject. Writes the attempt's number into `trace`. */
export async function handleEvent(
  state: EventState,
  delivery: EventDelivery,
  trace?: EventTrace,
): Promise<EventOutcome> {
  if (delivery.invalid !== undefined) {
    if (state.deadLetters !== undefined) return new OwnedEvent(state, delivery, none, trace).outcome();
    return giveUpMalformed(
      state,
      { delivery, claim: claimOf(delivery, state.keyPrefix), number: 1 },
      undefined,
    );
  }
  const handlers = state.handlersOf(delivery.type);
  if (handlers.length === 0) {
    state.onIgnored(delivery.type);
    return "ignored";
  }
  return new OwnedEvent(state, delivery, handlers, trace).outcome();
}

/** An event and its attempt. It is the handlers' context too: what most never ask for is made on demand. */
class OwnedEvent implements EventContext {
  readonly webhookId: string;
  readonly #state: EventState;
  readonly #handlers: readonly RoutedHandler[];
  readonly #trace: EventTrace | undefined;
  #attempt: EventAttempt;
  #run: LeasedRun | undefined;
  /** Of the work, once that has ended: whether it stays so, the end of the key decides. */
  #outcome: EventOutcome = "failed";
  #expired: GuardError | undefined;
  #controller: AbortController | undefined;
  #answer: (outcome: EventOutcome) => void = () => {};

  constructor(
    state: EventState,
    delivery: EventDelivery,
    handlers: readonly RoutedHandler[],
    trace: EventTrace | undefined,
  ) {
    this.webhookId = delivery.webhookId;
    this.#state = state;
    this.#attempt = { delivery, claim: claimOf(delivery, state.keyPrefix), number: 1 };
    this.#handlers = handlers;
    this.#trace = trace;
  }

  get attempt(): number {
    return this.#attempt.number;
  }

  /** Aborts when another attempt may own the event, or before that when the answer is due. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      if (this.#expired !== undefined) controller.abort(this.#expired);
      const ownership = this.#run?.signal;
      const follow = (): void => controller.abort(ownership?.reason);
      if (ownership?.aborted === true) follow();
      else ownership?.addEventListener("abort", follow, { once: true });
    }
    return this.#controller.signal;
  }

  /** Handles the event and ends its key; `timed-out` while that goes on after its time. Does not reject. */
  outcome(): Promise<EventOutcome> {
    return new Promise((resolve) => {
      this.#answer = resolve;
      void this.#perform();
    });
  }

  /** Answers the webhook although work goes on: the key stays owned, so no second attempt begins. */
  expire(): void {
    const error = webhookRefusal("event-timed-out");
    this.#expired ??= error;
    this.#controller?.abort(error);
    this.#answer(this.#report("timed-out", error));
  }

  async #perform(): Promise<void> {
    const { owner, recovery, deadlines } = this.#state;
    let outcome: EventOutcome;
    try {
      const rules = { recovery, isReserved: false };
      const key = this.#attempt.claim;
      outcome = this.#outcomeOf(await owner.perform({ key }, rules, (run) => this.#work(run)));
    } catch (error) {
      // Also of a store of the app's own that gave no known answer.
      outcome = this.#report("unavailable", error);
    }
    deadlines.remove(this);
    this.#answer(outcome);
  }

  #outcomeOf(performed: Performed<LeaseEnd>): EventOutcome {
    if (performed.status !== "ended") return notAcquired(this.#state, this.#attempt, performed);
    const { verdict, replacement } = performed.result;
    return verdict.key === "done" && replacement !== undefined ? "in-doubt" : this.#outcome;
  }

  /** Runs the handlers of an event that this process owns, and says how they have ended. Does not reject. */
  async #work(run: LeasedRun): Promise<WorkEnd> {
    this.#run = run;
    try {
      await this.#countFailures();
    } catch (error) {
      this.#outcome = this.#report("unavailable", error);
      return { kind: "never-began", status: undefined };
    }
    const handling = this.#handle(run);
    // Starts after the handlers' synchronous part, during which no timer could fire.
    this.#state.deadlines.add(this);
    try {
      await handling;
    } catch (error) {
      return this.#failed(run, error);
    }
    return this.#done("done");
  }

  async #countFailures(): Promise<void> {
    const { owner, deadLetters } = this.#state;
    if (deadLetters !== undefined) {
      const { claim } = this.#attempt;
      const failures = await countFailures(owner.keys, claim.key, deadLetters.maxAttempts);
      this.#attempt = { ...this.#attempt, number: failures + 1 };
    }
    if (this.#trace !== undefined) this.#trace.attempt = this.#attempt.number;
  }

  async #handle(run: LeasedRun): Promise<void> {
    this.#assertToBeHandled();
    for (const handler of this.#handlers) {
      // Another attempt may own it by now: begin nothing more beside it.
      if (run.lost) run.signal.throwIfAborted();
      // oxlint-disable-next-line no-await-in-loop -- in their order; each gets what it was registered for
      assertHandled(await Reflect.apply(handler, undefined, [this.#attempt.delivery.event, this]));
    }
  }

  #assertToBeHandled(): void {
    const { invalid } = this.#attempt.delivery;
    if (invalid !== undefined) {
      throw deliberate.mark(malformedError(invalid));
    }
    const { deadLetters } = this.#state;
    if (deadLetters !== undefined && this.attempt > deadLetters.maxAttempts) {
      const times = `the event has failed ${deadLetters.maxAttempts} times`;
      const message = `${times}, and its dead letter was not kept`;
      throw deliberate.mark(webhookRefusal("attempts-exhausted", { message }));
    }
  }

  /** The event is given up, which makes it done once its dead letter is kept, or `recovery` decides: the handler may have had its effect. */
  async #failed(run: LeasedRun, error: unknown): Promise<WorkEnd> {
    const isLost = run.lost;
    // No failure of the event: another attempt may own it.
    if (!isLost && (await this.#givesUp(error))) return this.#done("dead-lettered");
    this.#outcome = this.#report(isLost ? "busy" : "failed", error);
    return { kind: "threw", error, status: 500 };
  }

  async #givesUp(error: unknown): Promise<boolean> {
    const { owner, deadLetters } = this.#state;
    if (deadLetters === undefined) return false;
    const { claim, number, delivery } = this.#attempt;
    const { maxAttempts, onDeadLetter } = deadLetters;
    if (number <= maxAttempts) await recordFailure(owner.keys, claim.key, number);
    // No further attempt could read a malformed event.
    const isLast = number >= maxAttempts || delivery.invalid !== undefined;
    const letter = { attempt: this.#attempt, error, onDeadLetter };
    if (!isLast || !(await keepDeadLetter(this.#state, letter))) return false;
    this.#report("dead-lettered", error);
    return true;
  }

  #done(outcome: "done" | "dead-lettered"): WorkEnd {
    this.#outcome = outcome;
    return { kind: "responded", status: 200 };
  }

  #report(outcome: EventOutcome, error: unknown): EventOutcome {
    return reportFailure(this.#state, this.#attempt, { outcome, error });
  }
}
