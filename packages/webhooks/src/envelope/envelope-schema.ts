import { identifierFault } from "@countersign/core";
import * as z from "zod";
import type { UnknownWebhookEvent, WebhookEventMap } from "./events.ts";
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

const identifierRule =
  "must be a string of 1 to 256 assigned, visible characters in Unicode normalization form C";

// Checks, which cost half of what a refinement or a transformation does.
const identifier = z.string(identifierRule).check((payload) => {
  const { value } = payload;
  if (value.length === 0 || value.length > 256) addIssue(payload, identifierRule);
  else {
    const fault = identifierFault(value);
    if (fault !== undefined) addIssue(payload, `${identifierRule} (${fault})`);
  }
});

const timestamp = converted(z.string(timestampRule), readTimestamp, timestampRule);

const dateRule = "must be a date YYYY-MM-DD";
const calendarDate = z.string(dateRule).check((payload) => {
  if (!isCalendarDate(payload.value)) addIssue(payload, dateRule);
});

const daysRule = "must be an integer, or a string that holds one";
const integerText = /^-?(?:0|[1-9]\d*)$/;
const days = converted(z.union([z.number(), z.string()], daysRule), readDays, daysRule);

const statusChange = { old_status: identifier, new_status: identifier };

const knownEvents: { readonly [Type in keyof WebhookEventMap]: z.ZodType<WebhookEventMap[Type]> } = {
  "buyer.status_changed": eventSchema("buyer.status_changed", { buyer_id: identifier, ...statusChange }),
  "seller.status_changed": eventSchema("seller.status_changed", { seller_id: identifier, ...statusChange }),
  "payment_request.repayment.repaid": eventSchema("payment_request.repayment.repaid", {
    payment_request_id: identifier,
  }),
  "payment_request.repayment.reminder": eventSchema("payment_request.repayment.reminder", {
    payment_request_id: identifier,
    due_date: calendarDate,
    days_from_due_date: days,
  }),
};
const knownEventsByType = new Map(Object.entries(knownEvents));

const unknownEvent = z.looseObject(
  {
    event_id: identifier,
    timestamp,
    type: asType<UnknownWebhookEvent["type"]>(identifier),
    // What a type without a schema carries is no reason to refuse it, and neither is what it leaves out.
    data: z.unknown().default(undefined),
  },
  "must be an object",
);

/** The schema of everything around the events. */
export const envelopeSchema: z.ZodType<EnvelopeOfUnchecked> = z.looseObject(
  { webhook_id: identifier, timestamp, events: z.array(z.unknown(), "must be an array") },
  "must be an object",
);

/** What an event needs to be one at all. It holds for everything that an event's own schema lets pass. */
export const identifiedSchema: z.ZodType<IdentifiedEvent> = z.looseObject(
  { event_id: identifier, type: identifier },
  "must be an object",
);

/** The types of the spec, in its order. */
export const knownEventTypes: readonly string[] = [...knownEventsByType.keys()];

/** The schema of events of this type; another one for every type that the spec does not name. */
export function schemaFor(
  event: unknown,
): z.ZodType<WebhookEventMap[keyof WebhookEventMap] | UnknownWebhookEvent> {
  const type = typeof event === "object" && event !== null && "type" in event ? event.type : undefined;
  return (typeof type === "string" ? knownEventsByType.get(type) : undefined) ?? unknownEvent;
}

function asType<Value extends string>(schema: z.ZodType<string>): z.ZodType<Value> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a mark for the compiler alone
  return schema as z.ZodType<Value>;
}

function readDays(received: unknown): number | undefined {
  if (typeof received === "string" && !integerText.test(received)) return undefined;
  const value = Number(received);
  // JSON has a negative zero, which is no number of days.
  return Number.isSafeInteger(value) ? value + 0 : undefined;
}

/** The schema that puts in place of a value what `read` makes of it; undefined is against the rule. */
function converted<Received, Value>(
  schema: z.ZodType<Received>,
  read: (received: Received) => Value | undefined,
  rule: string,
): z.ZodType<Value> {
  const checked: z.ZodType = schema.check((payload) => {
    const value = read(payload.value);
    if (value === undefined) addIssue(payload, rule);
    else Object.assign(payload, { value });
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the check has put a Value in place of what was received
  return checked as z.ZodType<Value>;
}

function addIssue({ issues, value }: z.core.ParsePayload, message: string): void {
  issues.push({ code: "custom", message, input: value });
}

function eventSchema<Type extends string, Shape extends z.ZodRawShape>(type: Type, dataShape: Shape) {
  return z.looseObject({
    event_id: identifier,
    timestamp,
    type: z.literal(type),
    data: z.looseObject(dataShape, "must be an object"),
  });
}
