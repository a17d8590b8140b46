import { isPromiseLike } from "@countersign/guard";
import type { Awaitable } from "@countersign/idempotency-guard";
import type { EventState } from "./event-attempt.ts";
import { handleEvent } from "./event-handling.ts";
import type { EventDelivery, EventOutcome } from "./webhook-handler-types.ts";
import { workSlices } from "./work-slices.ts";

/**
 * The events of one envelope, a bounded number of them at a time, begun in their order, the event loop given back between
 * them. One that fails does not stop the others; a store that does not answer does, because each of them would wait for it.
 */
export class EventWork {
  /** By position, complete when run() has ended. */
  readonly outcomes: EventOutcome[] = [];
  readonly #state: EventState;
  readonly #deliveries: readonly EventDelivery[];
  #next = 0;
  #storeFailed = false;
  #paused: Promise<void> | undefined;

  constructor(state: EventState, deliveries: readonly EventDelivery[]) {
    this.#state = state;
    this.#deliveries = deliveries;
  }

  /** A promise only when a handler or the store gives one, or when all of them take longer than one slice. */
  run(concurrency: number): Awaitable<void> {
    const workers: Promise<void>[] = [];
    for (let worker = 0; worker < concurrency && this.#next < this.#deliveries.length; worker += 1) {
      const pending = this.#untilPending();
      if (pending !== undefined) workers.push(this.#work(pending));
    }
    if (workers.length === 0) return;
    return workers.length === 1 ? workers[0] : allOf(workers);
  }

  async #work(first: Step): Promise<void> {
    for (let step: Step | undefined = first; step !== undefined; step = this.#untilPending()) {
      // oxlint-disable-next-line no-await-in-loop -- the event loop is given back between two events
      if (step === sliceOver) await this.#pause();
      // oxlint-disable-next-line no-await-in-loop -- one worker does one event at a time
      else this.#keep(step.position, await step.outcome);
    }
  }

  /** Handles what is next until one has to be waited for, or the slice is over; undefined when nothing is left. */
  #untilPending(): Step | undefined {
    for (;;) {
      const position = this.#next;
      const delivery = this.#deliveries[position];
      if (delivery === undefined) return undefined;
      if (workSlices.over) return sliceOver;
      this.#next += 1;
      const outcome = this.#storeFailed ? "unavailable" : handleEvent(this.#state, delivery);
      if (isPromiseLike(outcome)) return { position, outcome };
      this.#keep(position, outcome);
    }
  }

  // One for all workers: a webhook of many would take as many slices in a row.
  #pause(): Promise<void> {
    this.#paused ??= this.#nextSlice();
    return this.#paused;
  }

  async #nextSlice(): Promise<void> {
    await workSlices.next();
    this.#paused = undefined;
  }

  #keep(position: number, outcome: EventOutcome): void {
    this.outcomes[position] = outcome;
    if (outcome === "unavailable") this.#storeFailed = true;
  }
}

const sliceOver = "slice-over";

/** What a worker has to wait for. */
type Step = PendingEvent | typeof sliceOver;

interface PendingEvent {
  readonly position: number;
  readonly outcome: Promise<EventOutcome>;
}

async function allOf(work: readonly Promise<void>[]): Promise<void> {
  await Promise.all(work);
}
