import { hash, randomUUID } from "node:crypto";
import { traces, type PublishedEvents } from "@countersign/core";
import { escapeForLog, traced } from "@countersign/core/internal";
import type { KeyAttempt, Performed } from "@countersign/idempotency/internal";
import { knownEventTypes } from "../envelope/envelope.ts";
import { webhookRefusal } from "../refusals.ts";
import { reportFailure, type EventAttempt, type Reporting } from "./failed-event.ts";
import type { EventDelivery, EventOutcome } from "./webhook-handler-types.ts";

/** Why an event is not this attempt's. */
export type NotOwned = Exclude<Performed<unknown>, { readonly status: "ended" }>;

export type EventTrace = PublishedEvents["event"];

/** `work` as one trace on `countersign:event`, until the webhook knows the outcome. */
export async function traceEvent(
  { type, event_id: eventId, webhookId }: EventDelivery,
  attempt: number | undefined,
  work: (trace: EventTrace) => Promise<EventOutcome>,
): Promise<EventOutcome> {
  const trace: EventTrace = {
    type: escapeForLog(type),
    isKnownType: knownEventTypes.includes(type),
    eventId: escapeForLog(eventId, 256),
    webhookId: escapeForLog(webhookId, 256),
    attempt,
  };
  return traced(traces.event, trace, { work: () => work(trace), outcomeOf: (outcome) => outcome });
}

/**
 * The identity of an event among all that are received. A malformed one has its own, which tells its content too: a later event with the same
 * id, repaired or broken in another way, is not its duplicate. An `event_id` holds no control character.
 */
export function identityOf({ event_id: id, invalid }: EventDelivery): string {
  if (invalid === undefined) return id;
  // 132 bits tell contents apart, and leave the key of a usual event whole in a log line.
  const digest = hash("sha256", JSON.stringify(invalid.raw), "base64url").slice(0, 22);
  return `${id}\tmalformed-${digest}`;
}

/** A new attempt at the key of an event. */
export function claimOf(delivery: EventDelivery, keyPrefix: string): KeyAttempt {
  return {
    key: keyPrefix + identityOf(delivery),
    fingerprint: eventFingerprint(delivery),
    token: randomUUID(),
  };
}

/** The outcome of an event whose key another attempt has, or had. */
export function notAcquired(state: Reporting, attempt: EventAttempt, refusal: NotOwned): EventOutcome {
  if (refusal.status !== "done") return "busy";
  const { key, fingerprint } = attempt.claim;
  if (refusal.fingerprint === fingerprint) return "duplicate";
  if (differsInType(refusal.fingerprint, fingerprint)) {
    return reportFailure(state, attempt, { outcome: "failed", error: webhookRefusal("event-id-reused") });
  }
  // Skipped all the same: nothing is handled twice because its time was written differently.
  const message = "is done, and came again as an event of another time";
  state.keys.alarm({ code: "event-id-reused", key, message });
  return "duplicate";
}

// A fingerprint has at most 128 characters, of which the time takes 30.
const shortType = /^[\w.:-]{1,64}$/;

/** The stored identity of an event besides its id: its time as received, and its type or the digest of a long one. */
export function eventFingerprint({ type, event }: EventDelivery): string {
  const kept = shortType.test(type) ? type : `#${hash("sha256", type, "base64url")}`;
  return `${event?.timestamp.raw ?? "invalid"} ${kept}`;
}

/** Whether the two name different types. A record that was written by hand may name none. */
function differsInType(fingerprint: string, other: string): boolean {
  const [type, otherType] = [typeIn(fingerprint), typeIn(other)];
  return type !== undefined && otherType !== undefined && type !== otherType;
}

function typeIn(fingerprint: string): string | undefined {
  const space = fingerprint.indexOf(" ");
  return space === -1 ? undefined : fingerprint.slice(space + 1);
}
