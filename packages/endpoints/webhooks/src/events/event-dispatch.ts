// Not the global one, which tests of an app may hold.
import { setImmediate } from "node:timers";
import type { InvalidWebhookEvent, WebhookEnvelope } from "../envelope/events.ts";
import type { EventDelivery, EventOutcome, EventResult, WebhookOutcome } from "./webhook-handler-types.ts";

/** Handles one event. Must not reject. */
type HandleEvent = (delivery: EventDelivery) => Promise<EventOutcome>;

/** Hands the events of an envelope to `handle`, `concurrency` of them at a time, and tells what became of each. */
export async function dispatchEvents(
  envelope: WebhookEnvelope,
  concurrency: number,
  handle: HandleEvent,
): Promise<WebhookOutcome> {
  const deliveries = deliveriesOf(envelope);
  const distinct = withoutRepeats(deliveries);
  const dispatch = new EventDispatch(distinct, handle);
  if (concurrency === 1) await dispatch.work();
  else {
    const workers = Math.min(concurrency, distinct.length);
    await Promise.all(Array.from({ length: workers }, () => dispatch.work()));
  }
  return outcomeOf(deliveries, distinct, dispatch.outcomes);
}

/**
 * The events of one envelope, begun in their order, the event loop given back between them. One that fails does not stop the
 * others; a store that does not answer does, because each of them would wait for it.
 */
class EventDispatch {
  /** By position, complete when every worker has ended. */
  readonly outcomes: EventOutcome[] = [];
  readonly #deliveries: readonly EventDelivery[];
  readonly #handle: HandleEvent;
  #next = 0;
  #storeFailed = false;
  #paused: Promise<void> | undefined;

  constructor(deliveries: readonly EventDelivery[], handle: HandleEvent) {
    this.#deliveries = deliveries;
    this.#handle = handle;
  }

  /** One worker: does one event at a time, until none is left. */
  async work(): Promise<void> {
    for (;;) {
      const position = this.#next;
      const delivery = this.#deliveries[position];
      if (delivery === undefined) return;
      // Between two events, whatever was awaited of the last one: promises that are settled already never give the loop back.
      if (workSlices.over) {
        // oxlint-disable-next-line no-await-in-loop -- the event loop is given back
        await this.#pause();
        continue;
      }
      this.#next += 1;
      // oxlint-disable-next-line no-await-in-loop -- one event at a time
      const outcome = this.#storeFailed ? "unavailable" : await this.#handle(delivery);
      this.outcomes[position] = outcome;
      if (outcome === "unavailable") this.#storeFailed = true;
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
}

/** Every position of the array on the wire, valid or not, in its order. */
function deliveriesOf({ webhook_id: webhookId, events, invalid }: WebhookEnvelope): EventDelivery[] {
  const deliveries: EventDelivery[] = [];
  let nextInvalid = 0;
  const takeInvalid = (fault: InvalidWebhookEvent): void => {
    nextInvalid += 1;
    const { event_id, type } = fault;
    deliveries.push({ webhookId, event_id, type, event: undefined, invalid: fault });
  };
  for (const event of events) {
    for (let fault = invalid[nextInvalid]; fault?.index === deliveries.length; fault = invalid[nextInvalid]) {
      takeInvalid(fault);
    }
    const { event_id, type } = event;
    deliveries.push({ webhookId, event_id, type, event, invalid: undefined });
  }
  // All of them, wherever they stood: an app that hands over fewer events than it received has not dealt with these.
  for (const fault of invalid.slice(nextInvalid)) takeInvalid(fault);
  return deliveries;
}

/**
 * Without those that repeat the first delivery of their id. One of another type or time is no repeat: whether it may pass for
 * the same event is decided at the store, as it is when it comes in a webhook of its own.
 */
function withoutRepeats(deliveries: readonly EventDelivery[]): readonly EventDelivery[] {
  if (deliveries.length < 2) return deliveries;
  const first = new Map<string, EventDelivery>();
  return deliveries.filter((delivery) => {
    const known = first.get(delivery.event_id);
    if (known !== undefined) return !isRepeat(delivery, known);
    first.set(delivery.event_id, delivery);
    return true;
  });
}

/** The outcomes of `distinct`, those without repeats, told for every delivery. */
function outcomeOf(
  deliveries: readonly EventDelivery[],
  distinct: readonly EventDelivery[],
  outcomes: readonly EventOutcome[],
): WebhookOutcome {
  const acknowledged = outcomes.every(isAcknowledged);
  const results = distinct.map((delivery, position) => resultOf(delivery, outcomes[position] ?? "failed"));
  if (distinct.length === deliveries.length) return { acknowledged, events: results };
  const first = new Map<string, EventOutcome>();
  let position = 0;
  const events = deliveries.map((delivery) => {
    const result = delivery === distinct[position] ? results[position++] : undefined;
    const outcome = first.get(delivery.event_id) ?? result?.outcome ?? "failed";
    first.set(delivery.event_id, outcome);
    if (result !== undefined) return result;
    const repeats = outcome === "done" || outcome === "dead-lettered";
    return resultOf(delivery, repeats ? "duplicate" : outcome);
  });
  return { acknowledged, events };
}

function isRepeat({ type, event }: EventDelivery, first: EventDelivery): boolean {
  return type === first.type && event?.timestamp.raw === first.event?.timestamp.raw;
}

function resultOf({ event_id, type }: EventDelivery, outcome: EventOutcome): EventResult {
  return { event_id, type, outcome };
}

const acknowledgedOutcomes: ReadonlySet<EventOutcome> = new Set([
  "done",
  "duplicate",
  "ignored",
  "dead-lettered",
]);

/** Whether the service need not send the event again. */
export function isAcknowledged(outcome: EventOutcome): boolean {
  return acknowledgedOutcomes.has(outcome);
}

/** How long the work of webhooks holds the event loop before it gives it back. With the step that is under way it stays under 20 ms. */
const sliceMs = 8;

/**
 * One slice of work in each turn of the event loop, whatever the number of webhooks: each of them with a slice of its own
 * would let a hundred at a time hold the loop for as long as one without slices.
 */
class WorkSlices {
  #endsAtMs: number | undefined;
  readonly #waiting: (() => void)[] = [];

  /** Whether whoever works has to wait for next() before its next step. */
  get over(): boolean {
    const nowMs = performance.now();
    if (this.#endsAtMs === undefined) {
      this.#begin(nowMs);
      return false;
    }
    return nowMs >= this.#endsAtMs;
  }

  /** Resolves in a turn of its own, in the order of asking. */
  next(): Promise<void> {
    if (this.#endsAtMs === undefined) this.#begin(performance.now());
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  #begin(nowMs: number): void {
    this.#endsAtMs = nowMs + sliceMs;
    // Neither a timer nor a microtask: between two of these, everything else that is due gets its turn.
    setImmediate(() => this.#end());
  }

  #end(): void {
    this.#endsAtMs = undefined;
    const resume = this.#waiting.shift();
    if (resume === undefined) return;
    this.#begin(performance.now());
    resume();
  }
}

/** Of this process. */
export const workSlices: WorkSlices = new WorkSlices();
