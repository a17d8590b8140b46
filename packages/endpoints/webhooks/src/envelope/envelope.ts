import { GuardError } from "@countersign/core";
import {
  asBuffer,
  option,
  parseJsonBytes,
  readOptions,
  type OptionRule,
  type OptionTable,
} from "@countersign/core/door";
import type { WebhookCode } from "../codes.ts";
import {
  Broken,
  readEnvelope,
  readEvent,
  readIdentified,
  type EnvelopeOfUnchecked,
  type IdentifiedEvent,
  type Issue,
} from "./envelope-schema.ts";
import type { InvalidWebhookEvent, WebhookEnvelope, WebhookEvent } from "./events.ts";

const maxDepth = 64;
// An event of the spec has 8. The JSON parser cannot pause, so what it may have to build is bounded before.
const valuesPerEvent = 20;

/** How many events a webhook may hold unless an option says otherwise. */
const defaultMaxEvents = 1_000;
// 50,000 values: what the parser builds in a good ten milliseconds.
const mostMaxEvents = 2_500;

/** Options of {@link parseWebhookEnvelope}. */
export interface WebhookEnvelopeOptions {
  /** How many events a webhook may hold, 1 to 2,500: more would hold the event loop for over 20 ms. Default 1,000. */
  readonly maxEvents?: number | undefined;
}

/** The rule of the option `maxEvents`. */
export const maxEventsRule: OptionRule<number> = option.integer({
  min: 1,
  max: mostMaxEvents,
  fallback: defaultMaxEvents,
});

export const envelopeTable: OptionTable<WebhookEnvelopeOptions> = { maxEvents: maxEventsRule };

/**
 * Reads the body of a webhook (spec, "Webhook envelope"): strict JSON, further fields kept, events of unknown types kept.
 * Throws a GuardError 400 with a `json-…` code, or `envelope-invalid` when the envelope or the identity of an event is wrong; 413
 * `events-too-many` for more than `maxEvents` events (default 1,000), `json-too-many-values` for more than 20 times as many values
 * (and more than 20,000). An event whose time or data is wrong is no reason to throw: it goes to `invalid`.
 */
export function parseWebhookEnvelope(
  bytes: Uint8Array,
  options: WebhookEnvelopeOptions = {},
): WebhookEnvelope {
  const { maxEvents } = readOptions("parseWebhookEnvelope", envelopeTable, options);
  const reading = new EnvelopeReading(bytes, maxEvents);
  while (reading.readEvent()) continue;
  return reading.envelope;
}

/** A webhook whose events are read one by one. */
export class EnvelopeReading {
  readonly #received: EnvelopeOfUnchecked;
  readonly #events: WebhookEvent[] = [];
  readonly #invalid: InvalidWebhookEvent[] = [];
  #next = 0;

  constructor(bytes: Uint8Array, maxEvents: number) {
    const maxValues = valuesPerEvent * Math.max(maxEvents, defaultMaxEvents);
    const { value } = parseJsonBytes(asBuffer(bytes), maxDepth, maxValues);
    const received = readEnvelope(value);
    if (received instanceof Broken) throw envelopeInvalid(received.issues);
    if (received.events.length > maxEvents) throw eventsTooMany(maxEvents);
    this.#received = received;
  }

  /** Complete when readEvent() has found none. */
  get envelope(): WebhookEnvelope {
    const [events, invalid] = [this.#events, this.#invalid];
    // V8 is slow at adding a member to a copy, so `invalid` stands before it; behind it, it wins over a field of that name.
    const copy = { invalid, ...this.#received };
    return { ...copy, events, invalid };
  }

  /** Whether there was one more. Throws when it does not name itself. */
  readEvent(): boolean {
    const { events } = this.#received;
    const index = this.#next;
    if (index >= events.length) return false;
    this.#next += 1;
    const received = events[index];
    const event = readEvent(received);
    if (!(event instanceof Broken)) {
      this.#events.push(event);
      return true;
    }
    const identified = readIdentified(received);
    // At the first one: to find the faults of half a million events takes seconds.
    if (identified instanceof Broken) {
      throw envelopeInvalid(identified.issues.map((issue) => inEvent(issue, index)));
    }
    this.#invalid.push(invalidEvent(identified, index, event.issues));
    return true;
  }
}

function inEvent({ path, message }: Issue, index: number): Issue {
  return { path: ["events", index, ...path], message };
}

function invalidEvent(
  received: IdentifiedEvent,
  index: number,
  issues: readonly Issue[],
): InvalidWebhookEvent {
  const { event_id, type } = received;
  const code = issues[0]?.path[0] === "timestamp" ? "timestamp-invalid" : "data-invalid";
  const detail = issues.map((issue) => describe(issue, ["events", index])).join("; ");
  return { index, event_id, type, code, detail, raw: received };
}

function eventsTooMany(maxEvents: number): GuardError<WebhookCode> {
  return new GuardError<WebhookCode>({
    status: 413,
    code: "events-too-many",
    message: `the webhook has more than ${maxEvents} events`,
  });
}

function envelopeInvalid(issues: readonly Issue[]): GuardError<WebhookCode> {
  const [first] = issues;
  const count = issues.length > 1 ? ` (${issues.length} faults in all)` : "";
  return new GuardError<WebhookCode>({
    status: 400,
    code: "envelope-invalid",
    message: `the webhook breaks the schema: ${first === undefined ? "" : describe(first, [])}${count}`,
  });
}

// The path holds positions and the names that the schema knows, so that nothing in it needs escaping (RFC 6901 section 3).
function describe({ path, message }: Issue, parent: Issue["path"]): string {
  const pointer = [...parent, ...path].map((part) => `/${String(part)}`).join("");
  return `${pointer === "" ? "the body" : pointer} ${message}`;
}
