import { isAcknowledged } from "./event-outcomes.ts";
import type { InvalidWebhookEvent, WebhookEnvelope } from "./events.ts";
import type { EventDelivery, EventOutcome, EventResult, WebhookOutcome } from "./webhook-handler-types.ts";

/** Every position of the array on the wire, valid or not, in its order. */
export function deliveriesOf({ webhook_id: webhookId, events, invalid }: WebhookEnvelope): EventDelivery[] {
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
export function withoutRepeats(deliveries: readonly EventDelivery[]): readonly EventDelivery[] {
  if (deliveries.length < 2) return deliveries;
  const first = new Map<string, EventDelivery>();
  return deliveries.filter((delivery) => {
    const known = first.get(delivery.event_id);
    if (known !== undefined) return !isRepeat(delivery, known);
    first.set(delivery.event_id, delivery);
    return true;
  });
}

/** The outcomes of `handled`, those without repeats, told for every delivery. */
export function outcomeOf(
  deliveries: readonly EventDelivery[],
  handled: readonly EventDelivery[],
  outcomes: readonly EventOutcome[],
): WebhookOutcome {
  const acknowledged = outcomes.every(isAcknowledged);
  const results = handled.map((delivery, position) => resultOf(delivery, outcomes[position] ?? "failed"));
  if (handled.length === deliveries.length) return { acknowledged, events: results };
  const first = new Map<string, EventOutcome>();
  let position = 0;
  const events = deliveries.map((delivery) => {
    const result = delivery === handled[position] ? results[position++] : undefined;
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
