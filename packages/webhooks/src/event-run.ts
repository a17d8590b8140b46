// Over 200 lines: most steps exist with and without a promise, and all share the private state of one run.
import { randomUUID } from "node:crypto";
import { GuardError, isPromiseLike } from "@countersign/guard";
import type { Awaitable, KeyInDoubt, OwnedKey } from "@countersign/idempotency-guard";
import { failureOf, type CountedDeadLetters, type EventAttempt, type EventState } from "./event-attempt.ts";
import type { Expiring } from "./event-deadlines.ts";
import {
  attemptsExhausted,
  eventNotBegun,
  eventTimedOut,
  isWaitOnly,
  ownershipFault,
} from "./event-faults.ts";
import { reportFailure } from "./event-report.ts";
import type { RoutedHandler } from "./event-routes.ts";
import { RunSignal } from "./run-signal.ts";
import { factory } from "./webhook-handler-options.ts";
import type { EventContext, EventOutcome } from "./webhook-handler-types.ts";

/** An event that this process owns: its handlers, within their time or not, and the one step that settles it. */
export class EventRun implements EventContext, Expiring {
  readonly webhookId: string;
  readonly attempt: number;
  readonly #state: EventState;
  readonly #attempt: EventAttempt;
  readonly #handlers: readonly RoutedHandler[];
  #owned: OwnedKey;
  readonly #signal: RunSignal;
  /** How many waits of the handler are under way, see waitFor(). */
  #waits = 0;
  #inLastHandler = false;
  #answer: ((outcome: EventOutcome) => void) | undefined;

  constructor(
    state: EventState,
    attempt: EventAttempt,
    { handlers, owned }: { readonly handlers: readonly RoutedHandler[]; readonly owned: OwnedKey },
  ) {
    this.webhookId = attempt.delivery.webhookId;
    this.attempt = attempt.number;
    this.#state = state;
    this.#attempt = attempt;
    this.#handlers = handlers;
    this.#owned = owned;
    this.#signal = new RunSignal(owned);
  }

  get signal(): AbortSignal {
    return this.#signal.value;
  }

  /** Aborts when the event is not this run's any more: unlike `signal`, not when its answer is due. */
  get ownership(): AbortSignal {
    return this.#owned.signal;
  }

  // A function of its own, so that a handler can take it out of the object. Made when somebody asks for it.
  get completeIn(): (tx: unknown) => Awaitable<void> {
    return (tx) => this.#completeIn(tx);
  }

  get waitFor(): <T>(pending: PromiseLike<T>) => Promise<T> {
    return (pending) => this.#waitFor(pending);
  }

  /** Runs and settles the event; `timed-out` while it still runs after its time. Neither throws nor rejects. */
  start(): Awaitable<EventOutcome> {
    const outcome = this.#begin();
    return isPromiseLike(outcome) ? this.#inTime(outcome) : outcome;
  }

  /**
   * The answer is due, but the run goes on: until it ends, or is given up, its key stays owned, so that no second run of the
   * event begins beside it. One that has only waited has not failed.
   */
  expire(): void {
    const waits = this.#waits > 0;
    const error = waits ? eventNotBegun() : eventTimedOut();
    this.#signal.abort(error);
    if (!waits) this.#report("timed-out", error);
    this.#answer?.(waits ? "busy" : "timed-out");
  }

  #completeIn(tx: unknown): Awaitable<void> {
    if (!this.#inLastHandler) {
      throw new TypeError(
        `${factory}: completeIn: another handler is yet to see the event; complete it there, not in onAny()`,
      );
    }
    // The turn of `latestOnly` may be another event's by now: what it wrote would be written over.
    if (this.#owned.lost) throw this.ownership.reason;
    return this.#owned.completeIn(tx);
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

  #inTime(pending: Promise<EventOutcome>): Promise<EventOutcome> {
    return new Promise((resolve) => {
      this.#answer = resolve;
      this.#state.deadlines.add(this);
      void this.#deliver(pending, resolve);
    });
  }

  async #deliver(pending: Promise<EventOutcome>, answer: (outcome: EventOutcome) => void): Promise<void> {
    const outcome = await pending;
    this.#state.deadlines.remove(this);
    answer(outcome);
  }

  #begin(): Awaitable<EventOutcome> {
    const { invalid } = this.#attempt.delivery;
    const { deadLetters } = this.#state;
    if (invalid !== undefined) {
      return this.#fail(new GuardError({ status: 400, code: invalid.code, message: invalid.detail }));
    }
    if (deadLetters !== undefined && this.attempt > deadLetters.maxAttempts) {
      // Its dead letter could not be kept the last time.
      return this.#fail(attemptsExhausted(deadLetters.maxAttempts));
    }
    return this.#handle(0);
  }

  #handle(from: number): Awaitable<EventOutcome> {
    const { event } = this.#attempt.delivery;
    for (let index = from; index < this.#handlers.length; index += 1) {
      // Another attempt may run by now: nothing more is begun beside it.
      if (this.#owned.lost) return this.#fail(this.ownership.reason);
      this.#inLastHandler = index === this.#handlers.length - 1;
      try {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- routed by its type: it gets what it was registered for
        const returned = this.#handlers[index]?.(event as never, this);
        // Inside, for a `then` that throws when it is asked for.
        if (isPromiseLike(returned)) return this.#handleLater(returned, index + 1);
      } catch (error) {
        return this.#fail(error);
      }
    }
    return this.#complete("done");
  }

  async #handleLater(pending: PromiseLike<unknown>, next: number): Promise<EventOutcome> {
    try {
      await pending;
    } catch (error) {
      return this.#fail(error);
    }
    return this.#handle(next);
  }

  #complete(outcome: "done" | "dead-lettered"): Awaitable<EventOutcome> {
    const doubt = this.#owned.complete();
    return isPromiseLike(doubt) ? this.#completeLater(doubt, outcome) : this.#completed(doubt, outcome);
  }

  async #completeLater(
    pending: Promise<KeyInDoubt | undefined>,
    outcome: "done" | "dead-lettered",
  ): Promise<EventOutcome> {
    return this.#completed(await pending, outcome);
  }

  #completed(doubt: KeyInDoubt | undefined, outcome: "done" | "dead-lettered"): EventOutcome {
    return doubt === undefined ? outcome : "in-doubt";
  }

  #fail(error: unknown): Awaitable<EventOutcome> {
    return this.#owned.inTransaction ? this.#failAfterTransaction(error) : this.#failed(error);
  }

  /** What failed behind a commit has taken effect: the event is done. */
  async #failAfterTransaction(error: unknown): Promise<EventOutcome> {
    if (!(await this.#owned.isDone())) return this.#failed(error);
    this.#report("done", error);
    return this.#complete("done");
  }

  #failed(error: unknown): Awaitable<EventOutcome> {
    // Neither a store that is down, nor a lost lease, nor a wait is the event's own failure.
    const fault = this.#owned.lost ? "busy" : ownershipFault(error);
    const { deadLetters } = this.#state;
    if (fault !== undefined || deadLetters === undefined) return this.#giveBack(fault ?? "failed", error);
    return this.#countFailure(deadLetters, error);
  }

  #giveBack(outcome: EventOutcome, error: unknown): Awaitable<EventOutcome> {
    if (!isWaitOnly(error)) this.#report(outcome, error);
    const left = this.#owned.release();
    return isPromiseLike(left) ? after(left, outcome) : outcome;
  }

  async #countFailure(deadLetters: CountedDeadLetters, error: unknown): Promise<EventOutcome> {
    const { failures, maxAttempts } = deadLetters;
    if (this.attempt <= maxAttempts) await failures.record(this.#attempt.claim.key, this.attempt);
    return this.attempt < maxAttempts ? this.#giveBack("failed", error) : this.#giveUp(deadLetters, error);
  }

  /** The event is done once its dead letter is kept. */
  async #giveUp({ onDeadLetter }: CountedDeadLetters, error: unknown): Promise<EventOutcome> {
    const elsewhere = this.#owned.inTransaction ? await this.#ownAgain() : undefined;
    if (elsewhere !== undefined) {
      this.#report(elsewhere, error);
      return elsewhere;
    }
    try {
      await onDeadLetter(failureOf(this.#attempt, "dead-lettered", error));
    } catch (letterError) {
      const { key } = this.#attempt.claim;
      const message = "has an onDeadLetter() that failed";
      this.#state.keys.alarm({ code: "dead-letter-failed", key, message, error: letterError });
      return this.#giveBack("failed", error);
    }
    this.#report("dead-lettered", error);
    return this.#complete("dead-lettered");
  }

  /**
   * Only behind the end of the handler's transaction, for which the release waits, is it certain that nothing was committed. Gives
   * the outcome when the event is not this run's after that.
   */
  async #ownAgain(): Promise<EventOutcome | undefined> {
    await this.#owned.release();
    try {
      const acquired = await this.#state.keys.acquire({ ...this.#attempt.claim, token: randomUUID() });
      if (acquired.status !== "acquired") return acquired.status === "done" ? "done" : "busy";
      this.#owned = acquired;
      return undefined;
    } catch {
      return "unavailable";
    }
  }

  #report(outcome: EventOutcome, error: unknown): void {
    reportFailure(this.#state, this.#attempt, outcome, error);
  }
}

async function after<T>(work: Promise<void>, value: T): Promise<T> {
  await work;
  return value;
}
