import type { EventOutcome } from "./webhook-handler-types.ts";

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
