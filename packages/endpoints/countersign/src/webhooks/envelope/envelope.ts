import type { GuardError } from "@countersign/core";
import {
  asBuffer,
  holdsLoneSurrogate,
  identifierFault,
  loneSurrogateRefusal,
  option,
  readJsonBytes,
  readOptions,
  type OptionRule,
  type OptionTable,
} from "@countersign/core/internal";
import { webhookRefusal, type WebhookCode } from "../refusals.ts";
import { EventSource } from "./event-text.ts";
import type { InvalidWebhookEvent, WebhookEnvelope, WebhookEvent, WebhookEventMap } from "./events.ts";
import { isCalendarDate, readTimestamp, timestampRule, type WebhookTimestamp } from "./timestamp.ts";

const maxDepth = 64;
// An event of the spec has 8. The JSON parser cannot pause, so the number of values is bounded before.
const valuesPerEvent = 20;

const defaultMaxEvents = 1_000;
// 50,000 values, which the parser builds in about ten milliseconds.
const mostMaxEvents = 2_500;

export interface WebhookEnvelopeOptions {
  /** How many events a webhook may hold, 1 to 2,500: more would hold the event loop for over 20 ms. Default 1,000. */
  readonly maxEvents?: number | undefined;
}

export const maxEventsRule: OptionRule<number> = option.integer({
  min: 1,
  max: mostMaxEvents,
  fallback: defaultMaxEvents,
});

export const envelopeTable: OptionTable<WebhookEnvelopeOptions> = { maxEvents: maxEventsRule };

/**
 * Reads the body of a webhook (spec, "Webhook envelope"): strict JSON; further fields and unknown types are kept. Throws a GuardError 400
 * with a `json-…` code, or `envelope-invalid` for a wrong envelope; 413 `events-too-many` beyond `maxEvents` (default 1,000),
 * `json-too-many-values` beyond 20 times as many values (and 20,000). A malformed event does not throw: it goes to `invalid`.
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

export class EnvelopeReading {
  /** Complete once readEvent() returned false. */
  readonly envelope: WebhookEnvelope;
  readonly #received: readonly unknown[];
  readonly #source: EventSource;
  readonly #hasLoneSurrogate: boolean;
  readonly #events: WebhookEvent[] = [];
  readonly #invalid: InvalidWebhookEvent[] = [];
  #next = 0;

  constructor(bytes: Uint8Array, maxEvents: number) {
    const maxValues = valuesPerEvent * Math.max(maxEvents, defaultMaxEvents);
    const { text, value, hasLoneSurrogate } = readJsonBytes(asBuffer(bytes), maxDepth, maxValues);
    const received = readEnvelope(value);
    if (received instanceof Broken) throw envelopeInvalid(received.issues);
    if (received.events.length > maxEvents) {
      throw webhookRefusal("events-too-many", { message: `the webhook has more than ${maxEvents} events` });
    }
    // Half a character in an event is a fault of that event alone.
    if (hasLoneSurrogate && holdsLoneSurrogate({ ...received, events: [] })) throw loneSurrogateRefusal();
    this.#hasLoneSurrogate = hasLoneSurrogate;
    this.#received = received.events;
    this.envelope = Object.assign(received, { events: this.#events, invalid: this.#invalid });
    this.#source = new EventSource(text);
  }

  /** Reads the next event; false when there is none. */
  readEvent(): boolean {
    const events = this.#received;
    const index = this.#next;
    if (index >= events.length) return false;
    this.#next += 1;
    const received = events[index];
    const event = readWellFormed(received, this.#hasLoneSurrogate);
    if (event instanceof Broken) {
      const invalid = { index, ...faultOf(received, under(["events", index], event)) };
      this.#invalid.push(invalid);
      this.#source.keep(invalid, index);
    } else {
      this.#events.push(event);
      this.#source.keep(event, index);
    }
    return true;
  }
}

/** An event that an envelope held: either `event` or `invalid` is defined. */
export type KeptEvent = { readonly webhookId: string } & (
  | { readonly event: WebhookEvent; readonly invalid: undefined }
  | { readonly event: undefined; readonly invalid: InvalidWebhookEvent }
);

/** Reads an event that an envelope held, by the same rules, from its JSON in another object. Throws a GuardError for another text. */
export function readKept(bytes: Buffer): KeptEvent {
  const { value, hasLoneSurrogate } = readJsonBytes(bytes, maxDepth);
  const kept = readKeptFields(value);
  if (kept instanceof Broken) throw envelopeInvalid(kept.issues);
  const webhookId = kept.webhook_id;
  const event = readWellFormed(kept.event, hasLoneSurrogate);
  if (!(event instanceof Broken)) return { webhookId, event, invalid: undefined };
  const invalid = { index: 0, ...faultOf(kept.event, under(["event"], event)) };
  return { webhookId, event: undefined, invalid };
}

/** A malformed event with as much of its identity as it has. */
function faultOf(raw: unknown, issues: readonly Issue[]): Omit<InvalidWebhookEvent, "index"> {
  const fields = isObject(raw) ? raw : {};
  const textOf = (name: "event_id" | "type"): string => {
    const text = identifier(fields[name]);
    return text instanceof Broken ? "" : text;
  };
  const isTimestamp = issues[0]?.path.at(-1) === "timestamp";
  return {
    event_id: textOf("event_id"),
    type: textOf("type"),
    code: isTimestamp ? "timestamp-invalid" : "data-invalid",
    detail: issues.map(describe).join("; "),
    raw,
  };
}

function envelopeInvalid(issues: readonly Issue[]): GuardError<WebhookCode> {
  const [first] = issues;
  const count = issues.length > 1 ? ` (${issues.length} faults in all)` : "";
  const message = `the webhook breaks the schema: ${first === undefined ? "" : describe(first)}${count}`;
  return webhookRefusal("envelope-invalid", { message });
}

// The path holds positions and the names that the schema knows, so that nothing in it needs escaping (RFC 6901 section 3).
function describe({ path, message }: Issue): string {
  const pointer = path.map((part) => `/${String(part)}`).join("");
  return `${pointer === "" ? "the body" : pointer} ${message}`;
}

interface EnvelopeOfUnchecked {
  readonly webhook_id: string;
  readonly timestamp: WebhookTimestamp;
  readonly events: readonly unknown[];
  readonly [field: string]: unknown;
}

interface Issue {
  readonly path: readonly (string | number)[];
  /** Never the received value. */
  readonly message: string;
}

class Broken {
  readonly issues: readonly Issue[];

  constructor(issues: readonly Issue[]) {
    this.issues = issues;
  }
}

/** Returns the value to use for a received one. */
type Rule<Value> = (received: unknown) => Value | Broken;

const identifierRule =
  "must be a string of 1 to 256 assigned, visible characters in Unicode normalization form C";

const identifier: Rule<string> = (received) => {
  if (typeof received !== "string" || received.length === 0 || received.length > 256) {
    return broken(identifierRule);
  }
  const fault = identifierFault(received);
  return fault === undefined ? received : broken(`${identifierRule} (${fault})`);
};

const timestamp: Rule<WebhookTimestamp> = (received) => readTimestamp(received) ?? broken(timestampRule);

const calendarDate: Rule<string> = (received) =>
  typeof received === "string" && isCalendarDate(received) ? received : broken("must be a date YYYY-MM-DD");

const integerText = /^-?(?:0|[1-9]\d*)$/;

const days: Rule<number> = (received) => {
  const isNumeric =
    typeof received === "number" || (typeof received === "string" && integerText.test(received));
  const value = Number(received);
  // JSON has a negative zero.
  if (isNumeric && Number.isSafeInteger(value)) return value + 0;
  return broken("must be an integer, or a string that holds one");
};

const list: Rule<readonly unknown[]> = (received) =>
  Array.isArray(received) ? received : broken("must be an array");

const statusChange = { old_status: identifier, new_status: identifier };

export const dataRules: {
  readonly [Type in keyof WebhookEventMap]: FieldRules<WebhookEventMap[Type]["data"]>;
} = {
  "buyer.status_changed": { buyer_id: identifier, ...statusChange },
  "seller.status_changed": { seller_id: identifier, ...statusChange },
  "payment_request.repayment.repaid": { payment_request_id: identifier },
  "payment_request.repayment.reminder": {
    payment_request_id: identifier,
    due_date: calendarDate,
    days_from_due_date: days,
  },
};

const knownEvents = new Map(
  Object.entries<FieldRules<object>>(dataRules).map(([type, rules]) => [
    type,
    objectOf({ event_id: identifier, timestamp, data: objectOf(rules) }, true),
  ]),
);

// An unknown type may carry and leave out anything.
const unknownEvent = objectOf(
  { event_id: identifier, timestamp, type: identifier, data: (received: unknown) => received },
  true,
);

const readEnvelope: Rule<EnvelopeOfUnchecked> = objectOf(
  { webhook_id: identifier, timestamp, events: list },
  true,
);

const readKeptFields: Rule<{ readonly webhook_id: string; readonly event: unknown }> = objectOf({
  webhook_id: identifier,
  event: (received: unknown) => received,
});

/** In the spec's order. */
export const knownEventTypes: readonly string[] = [...knownEvents.keys()];

/** As {@link readEvent}; an event with half a character is broken, wherever that stands: no database would store it as it came. */
function readWellFormed(received: unknown, mayHoldLoneSurrogate: boolean): WebhookEvent | Broken {
  if (!mayHoldLoneSurrogate || !holdsLoneSurrogate(received)) return readEvent(received);
  return broken("must not hold half of a surrogate pair, such as the escape \\ud800 alone");
}

function readEvent(received: unknown): WebhookEvent | Broken {
  const type = isObject(received) ? received["type"] : undefined;
  const rule = (typeof type === "string" ? knownEvents.get(type) : undefined) ?? unknownEvent;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the rules of the type have let it pass
  return rule(received) as WebhookEvent | Broken;
}

function broken(message: string): Broken {
  return new Broken([{ path: [], message }]);
}

type FieldRules<Fields> = { readonly [Name in keyof Fields]: Rule<Fields[Name]> };

/**
 * The rule of an object with these fields, and any others. `isOwn`: one that keeps the rules is changed itself, since a copy of thousands
 * of fields takes as long as to parse them. Inside of another object it is not: that may break its own rules, and is then shown as it came.
 */
function objectOf<Fields extends object>(
  fields: FieldRules<Fields>,
  isOwn = false,
): Rule<Fields & Readonly<Record<string, unknown>>> {
  const rules = Object.entries<Rule<unknown>>(fields);
  return (received) => {
    if (!isObject(received)) return broken("must be an object");
    const changed: [name: string, value: unknown][] = [];
    let issues: Issue[] | undefined;
    for (const [name, rule] of rules) {
      const value = rule(received[name]);
      if (value instanceof Broken) (issues ??= []).push(...under([name], value));
      // 0 and -0 differ.
      else if (value === undefined || !Object.is(value, received[name])) changed.push([name, value]);
    }
    if (issues !== undefined) return new Broken(issues);
    const taken: Record<string, unknown> = isOwn || changed.length === 0 ? received : { ...received };
    for (const [name, value] of changed) taken[name] = value;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each field is what its rule gave
    return taken as Fields & Readonly<Record<string, unknown>>;
  };
}

function under(parent: Issue["path"], { issues }: Broken): readonly Issue[] {
  return issues.map(({ path, message }) => ({ path: [...parent, ...path], message }));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
