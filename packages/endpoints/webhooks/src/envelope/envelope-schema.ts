import { identifierFault } from "@countersign/core/door";
import type { WebhookEvent, WebhookEventMap } from "./events.ts";
import { isCalendarDate, readTimestamp, timestampRule, type WebhookTimestamp } from "./timestamp.ts";

/** An event of which only the identity was checked. */
export interface IdentifiedEvent {
  readonly event_id: string;
  readonly type: string;
  readonly [field: string]: unknown;
}

/** An envelope of which everything but its events was checked. */
export interface EnvelopeOfUnchecked {
  readonly webhook_id: string;
  readonly timestamp: WebhookTimestamp;
  readonly events: readonly unknown[];
  readonly [field: string]: unknown;
}

/** A rule that a part of what was received breaks. */
export interface Issue {
  readonly path: readonly (string | number)[];
  /** Never the received value. */
  readonly message: string;
}

/** What stands against taking a value. */
export class Broken {
  readonly issues: readonly Issue[];

  constructor(issues: readonly Issue[]) {
    this.issues = issues;
  }
}

/** Gives what is taken in place of a received value, which it leaves as it is. */
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
  // JSON has a negative zero, which is no number of days.
  if (isNumeric && Number.isSafeInteger(value)) return value + 0;
  return broken("must be an integer, or a string that holds one");
};

const list: Rule<readonly unknown[]> = (received) =>
  Array.isArray(received) ? received : broken("must be an array");

const statusChange = { old_status: identifier, new_status: identifier };

/** What each known type of event has to have in its data. */
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
    objectOf({ event_id: identifier, timestamp, data: objectOf(rules) }),
  ]),
);

// What a type without a schema carries is no reason to refuse it, and neither is what it leaves out.
const unknownEvent = objectOf({ event_id: identifier, timestamp, type: identifier, data: anything });

/** Everything around the events. */
export const readEnvelope: Rule<EnvelopeOfUnchecked> = objectOf({
  webhook_id: identifier,
  timestamp,
  events: list,
});

/** What an event needs to be one at all. It holds for everything that {@link readEvent} lets pass. */
export const readIdentified: Rule<IdentifiedEvent> = objectOf({ event_id: identifier, type: identifier });

/** The types of the spec, in its order. */
export const knownEventTypes: readonly string[] = [...knownEvents.keys()];

/** An event by the rules of its type, with no rules for the data of a type that the spec does not name. */
export function readEvent(received: unknown): WebhookEvent | Broken {
  const type = isObject(received) ? received["type"] : undefined;
  const rule = (typeof type === "string" ? knownEvents.get(type) : undefined) ?? unknownEvent;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the rules of the type have let it pass
  return rule(received) as WebhookEvent | Broken;
}

/** Also nothing: the member is there then, and undefined. */
function anything(received: unknown): unknown {
  return received;
}

function broken(message: string): Broken {
  return new Broken([{ path: [], message }]);
}

type FieldRules<Fields> = { readonly [Name in keyof Fields]: Rule<Fields[Name]> };

/** The rule of an object with these fields, and any others. */
function objectOf<Fields extends object>(
  fields: FieldRules<Fields>,
): Rule<Fields & Readonly<Record<string, unknown>>> {
  const rules = Object.entries<Rule<unknown>>(fields);
  return (received) => {
    if (!isObject(received)) return broken("must be an object");
    const taken: Record<string, unknown> = { ...received };
    let issues: Issue[] | undefined;
    for (const [name, rule] of rules) {
      const value = rule(received[name]);
      if (value instanceof Broken) (issues ??= []).push(...value.issues.map((issue) => under(name, issue)));
      // What is there already need not be written; 0 is not the same as -0.
      else if (value === undefined || !Object.is(value, received[name])) taken[name] = value;
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each field is what its rule gave
    return issues === undefined ? (taken as Fields & Readonly<Record<string, unknown>>) : new Broken(issues);
  };
}

function under(name: string, { path, message }: Issue): Issue {
  return { path: [name, ...path], message };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
