import { GuardError, quoteForLog } from "@countersign/guard";
import { isAcknowledged } from "./event-outcomes.ts";
import type { EventResult, WebhookOutcome } from "./webhook-handler-types.ts";

const namedEvents = 5;

/** The configuration mistake of a chain without `webhookHmac`: without it anybody's events would be handled. */
export function payloadNotVerified(): GuardError {
  return new GuardError({
    status: 500,
    code: "payload-not-verified",
    message: "receiveWebhook() found no verified payload: mount webhookHmac() before it",
  });
}

/** The error that makes the service send the webhook again: `events-busy` when its events only run elsewhere. */
export function eventsNotDone({ events }: WebhookOutcome): GuardError {
  const open = events.filter(({ outcome }) => !isAcknowledged(outcome));
  const busy = open.every(({ outcome }) => outcome === "busy");
  const others = open.length - namedEvents;
  return new GuardError({
    status: 503,
    code: busy ? "events-busy" : "events-failed",
    message:
      `${open.length} of ${events.length} events are not done: ` +
      open.slice(0, namedEvents).map(describe).join(", ") +
      (others > 0 ? `, and ${others} more` : ""),
    headers: { "Retry-After": "5" },
  });
}

function describe({ event_id, outcome }: EventResult): string {
  return `${quoteForLog(event_id)} ${outcome}`;
}
