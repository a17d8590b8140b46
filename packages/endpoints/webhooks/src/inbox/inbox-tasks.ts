import { TaskError, type NewTask } from "@countersign/work";
import { readKept } from "../envelope/envelope.ts";
import { receivedText } from "../envelope/event-text.ts";
import type { WebhookEvent } from "../envelope/events.ts";
import { eventFingerprint } from "../events/event-identity.ts";
import type { EventDelivery } from "../events/webhook-handler-types.ts";

/** An event that was received. */
export type ValidDelivery = EventDelivery & { readonly event: WebhookEvent };

/** The event as a task, with its text as it was verified. Throws a TypeError for an event that the parser did not make. */
export function taskOf(
  { webhookId, event_id: id, event }: ValidDelivery,
  entity: string | undefined,
): NewTask {
  const body = `{"webhook_id":${JSON.stringify(webhookId)},"event":${receivedText(event)}}`;
  return { id, body, entity };
}

/** Reads the body of a task. Throws a TaskError, final, for one that is no event: another attempt would read the same. */
export function deliveryOf(body: string): ValidDelivery {
  try {
    const { webhookId, event } = readKept(Buffer.from(body));
    const { event_id, type } = event;
    return { webhookId, event_id, type, event, invalid: undefined };
  } catch (error) {
    throw new TaskError("the task's body is no event", { isFinal: true, cause: error });
  }
}

/** The fingerprint of a kept event; empty for one that cannot be read. */
export function keptFingerprint(body: string): string {
  try {
    return eventFingerprint(deliveryOf(body));
  } catch {
    return "";
  }
}
