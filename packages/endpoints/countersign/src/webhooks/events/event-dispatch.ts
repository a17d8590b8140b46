import { workSlices } from "@countersign/core/internal";
import type { InvalidWebhookEvent, WebhookEnvelope } from "../envelope/events.ts";
import { identityOf } from "./event-identity.ts";
import type { EventDelivery, EventOutcome, EventResult, WebhookOutcome } from "./webhook-handler-types.ts";

/** Must not reject. */
type HandleEvent = (delivery: EventDelivery) => Promise<EventOutcome>;

/** An envelope's events, valid or not, and which of them repeat an earlier one. */
export interface EventPlan {
  readonly deliveries: readonly EventDelivery[];
  /** By position: its own, or for a repeat that of the first. */
  readonly firsts: readonly number[];
  /** The outcome of the webhook by those of its first events, by position. */
  outcomeOf(this: void, outcomes: readonly (EventOutcome | undefined)[]): WebhookOutcome;
}

export function planOf(envelope: WebhookEnvelope): EventPlan {
  const deliveries = deliveriesOf(envelope);
  const firsts = firstPositions(deliveries);
  const outcomeOf: EventPlan["outcomeOf"] = (outcomes) => {
    const events = deliveries.map(({ event_id, type }, position): EventResult => {
      const first = firsts[position] ?? position;
      const outcome = outcomes[first] ?? "failed";
      const isDuplicate = first !== position && taken.has(outcome);
      return { event_id, type, outcome: isDuplicate ? "duplicate" : outcome };
    });
    return { acknowledged: events.every(({ outcome }) => isAcknowledged(outcome)), events };
  };
  return { deliveries, firsts, outcomeOf };
}

/**
 * Passes an envelope's events to `handle` in order, `concurrency` at a time, yielding to the event loop between them. A failing event does
 * not stop the others; a store that does not answer does: each of them would wait for it.
 */
export async function dispatchEvents(
  envelope: WebhookEnvelope,
  concurrency: number,
  handle: HandleEvent,
): Promise<WebhookOutcome> {
  const { deliveries, firsts, outcomeOf } = planOf(envelope);
  // By position; none for a repeat.
  const outcomes: EventOutcome[] = [];
  let next = 0;
  let storeFailed = false;
  const pause = sharedPause();
  const work = async (): Promise<void> => {
    for (let delivery = deliveries[next]; delivery !== undefined; delivery = deliveries[next]) {
      // Between two events, whatever was awaited for the last one: settled promises never yield to the event loop.
      if (firsts[next] === next && workSlices.over) {
        // oxlint-disable-next-line no-await-in-loop -- yields to the event loop
        await pause();
        continue;
      }
      const position = next;
      next += 1;
      if (firsts[position] !== position) continue;
      // oxlint-disable-next-line no-await-in-loop -- one event at a time
      const outcome = storeFailed ? "unavailable" : await handle(delivery);
      outcomes[position] = outcome;
      if (outcome === "unavailable") storeFailed = true;
    }
  };
  const workers = Math.min(concurrency, deliveries.length);
  // Most webhooks have one event: Promise.all would cost more than the rest of this function.
  await (workers === 1 ? work() : Promise.all(Array.from({ length: workers }, work)));
  return outcomeOf(outcomes);
}

/** One pause for all workers: they would take as many slices in a row. */
function sharedPause(): () => Promise<void> {
  let paused: Promise<void> | undefined;
  return () => (paused ??= workSlices.next().finally(() => (paused = undefined)));
}

/** The events in the order of the array on the wire, valid or not. */
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
  // Also those beyond the valid ones: the app may have taken events out of the envelope.
  for (const fault of invalid.slice(nextInvalid)) takeInvalid(fault);
  return deliveries;
}

/** For a repeat, the position of the first with its id. Another type or time is no repeat: the store decides whether it is the same. */
function firstPositions(deliveries: readonly EventDelivery[]): readonly number[] {
  const first = new Map<string, number>();
  return deliveries.map((delivery, position) => {
    const identity = identityOf(delivery);
    const earlier = first.get(identity) ?? position;
    first.set(identity, earlier);
    return isRepeat(delivery, deliveries[earlier]) ? earlier : position;
  });
}

function isRepeat({ type, event }: EventDelivery, first: EventDelivery | undefined): boolean {
  return type === first?.type && event?.timestamp.raw === first.event?.timestamp.raw;
}

/** Of the first event of an id: a repeat is its duplicate. */
const taken: ReadonlySet<EventOutcome> = new Set(["done", "accepted", "dead-lettered"]);
const acknowledgedOutcomes: ReadonlySet<EventOutcome> = new Set([...taken, "duplicate", "ignored"]);

export function isAcknowledged(outcome: EventOutcome): boolean {
  return acknowledgedOutcomes.has(outcome);
}
