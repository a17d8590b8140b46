import { assertKnownOptions, GuardError, integerOption } from "@countersign/guard";
import type { Awaitable } from "@countersign/idempotency-guard";
import { parseJsonBytes } from "@countersign/raw-body";
import {
  envelopeSchema,
  identifiedSchema,
  schemaFor,
  type EnvelopeOfUnchecked,
  type IdentifiedEvent,
} from "./envelope-schema.ts";
import type { InvalidWebhookEvent, WebhookEnvelope, WebhookEvent } from "./events.ts";
import { workSlices } from "./work-slices.ts";

const maxDepth = 64;
// An event of the spec has 8. The JSON parser cannot pause, so what it may have to build is bounded before.
const valuesPerEvent = 20;

/** How many events a webhook may hold unless an option says otherwise. */
const defaultMaxEvents = 1_000;

/** Options of {@link parseWebhookEnvelope}. */
export interface WebhookEnvelopeOptions {
  /** How many events a webhook may hold, 1 to 1,000,000. Default 1,000. */
  readonly maxEvents?: number | undefined;
}

/** `options.maxEvents` of `factory`, or the default. Throws a TypeError when it is no number in its range. */
export function resolveMaxEvents(factory: string, { maxEvents }: WebhookEnvelopeOptions): number {
  return integerOption(factory, "maxEvents", maxEvents, {
    min: 1,
    max: 1_000_000,
    fallback: defaultMaxEvents,
  });
}

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
  const factory = "parseWebhookEnvelope";
  assertKnownOptions(factory, options, ["maxEvents"]);
  const reading = new EnvelopeReading(bytes, resolveMaxEvents(factory, options));
  while (reading.readEvent()) continue;
  return reading.envelope;
}

/** {@link parseWebhookEnvelope} for a server: gives the event loop back between two events. A promise only when it has to. */
export function readWebhookEnvelope(bytes: Uint8Array, maxEvents: number): Awaitable<WebhookEnvelope> {
  return workSlices.over ? readLater(bytes, maxEvents) : readOn(new EnvelopeReading(bytes, maxEvents));
}

async function readLater(bytes: Uint8Array, maxEvents: number): Promise<WebhookEnvelope> {
  await workSlices.next();
  return readOn(new EnvelopeReading(bytes, maxEvents));
}

function readOn(reading: EnvelopeReading): Awaitable<WebhookEnvelope> {
  while (!workSlices.over) {
    if (!reading.readEvent()) return reading.envelope;
  }
  return readOnLater(reading);
}

async function readOnLater(reading: EnvelopeReading): Promise<WebhookEnvelope> {
  await workSlices.next();
  return readOn(reading);
}

/** A webhook whose events are read one by one. */
class EnvelopeReading {
  readonly #received: EnvelopeOfUnchecked;
  readonly #events: WebhookEvent[] = [];
  readonly #invalid: InvalidWebhookEvent[] = [];
  #next = 0;

  constructor(bytes: Uint8Array, maxEvents: number) {
    const maxValues = valuesPerEvent * Math.max(maxEvents, defaultMaxEvents);
    const { value } = parseJsonBytes(asBuffer(bytes), maxDepth, maxValues);
    const { data: received, error } = envelopeSchema.safeParse(value);
    if (error !== undefined) throw envelopeInvalid(error.issues);
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
    const { data: event, error: fault } = schemaFor(received).safeParse(received);
    if (fault === undefined) {
      this.#events.push(event);
      return true;
    }
    const { data: identified, error: identityFault } = identifiedSchema.safeParse(received);
    // At the first one: to find the faults of half a million events takes seconds.
    if (identityFault !== undefined) {
      throw envelopeInvalid(identityFault.issues.map((issue) => inEvent(issue, index)));
    }
    this.#invalid.push(invalidEvent(identified, index, fault.issues));
    return true;
  }
}

interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

function inEvent({ path, message }: Issue, index: number): Issue {
  return { path: ["events", index, ...path], message };
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
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

function eventsTooMany(maxEvents: number): GuardError {
  return new GuardError({
    status: 413,
    code: "events-too-many",
    message: `the webhook has more than ${maxEvents} events`,
  });
}

function envelopeInvalid(issues: readonly Issue[]): GuardError {
  const [first] = issues;
  const count = issues.length > 1 ? ` (${issues.length} faults in all)` : "";
  return new GuardError({
    status: 400,
    code: "envelope-invalid",
    message: `the webhook breaks the schema: ${first === undefined ? "" : describe(first, [])}${count}`,
  });
}

// The path holds positions and the names that the schema knows, so that nothing in it needs escaping (RFC 6901 section 3).
function describe({ path, message }: Issue, parent: readonly PropertyKey[]): string {
  const pointer = [...parent, ...path].map((part) => `/${String(part)}`).join("");
  return `${pointer === "" ? "the body" : pointer} ${message}`;
}
