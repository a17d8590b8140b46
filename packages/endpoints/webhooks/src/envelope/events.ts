import type { WebhookTimestamp } from "./timestamp.ts";

/**
 * What every event has (spec, "Event object"). Further fields are kept, but have no place in the type, where a misspelt name
 * would pass for one: see {@link allFields}.
 */
interface WebhookEventFields<Type extends string, Data> {
  /** 1 to 256 assigned, visible characters in Unicode normalization form C. */
  readonly event_id: string;
  /** When the event occurred: the source of truth for the order of events. */
  readonly timestamp: WebhookTimestamp;
  readonly type: Type;
  readonly data: Data;
}

/** The statuses of buyers and sellers that the spec names. */
export type PartyStatus = "PENDING" | "ACTIVE" | "INACTIVE" | "REJECTED" | "SUSPENDED";

/** A status as received: a value that the spec does not name passes through. */
type ReceivedPartyStatus = PartyStatus | (string & {});

/** The status of a buyer changed. */
export type BuyerStatusChanged = WebhookEventFields<
  "buyer.status_changed",
  {
    readonly buyer_id: string;
    readonly old_status: ReceivedPartyStatus;
    readonly new_status: ReceivedPartyStatus;
  }
>;

/** The status of a seller changed. */
export type SellerStatusChanged = WebhookEventFields<
  "seller.status_changed",
  {
    readonly seller_id: string;
    readonly old_status: ReceivedPartyStatus;
    readonly new_status: ReceivedPartyStatus;
  }
>;

/** A payment request was fully repaid by the buyer and can be considered closed. */
export type PaymentRequestRepaid = WebhookEventFields<
  "payment_request.repayment.repaid",
  { readonly payment_request_id: string }
>;

/** A payment request is near or past its repayment deadline. */
export type PaymentRequestReminder = WebhookEventFields<
  "payment_request.repayment.reminder",
  {
    readonly payment_request_id: string;
    /** `YYYY-MM-DD`, a day of the calendar. */
    readonly due_date: string;
    /** Calendar days since the due date, negative before it. An integer, whether it came as a number or as a string. */
    readonly days_from_due_date: number;
  }
>;

/** The known events by their type. */
export interface WebhookEventMap {
  "buyer.status_changed": BuyerStatusChanged;
  "seller.status_changed": SellerStatusChanged;
  "payment_request.repayment.repaid": PaymentRequestRepaid;
  "payment_request.repayment.reminder": PaymentRequestReminder;
}

/** The types that have a schema. */
export type KnownEventType = keyof WebhookEventMap;

declare const unknownType: unique symbol;

/**
 * Any string but the known types, marked for the compiler alone so that a `switch` on `type` narrows. To compare it with a type
 * of your own, take it as a string: `const type: string = event.type`.
 */
// Of a marked plain string the compiler believes that it could be each of the known types, of a marked template it does not.
// oxlint-disable-next-line typescript/no-explicit-any -- a template of string is string again
type UnknownEventType = `${any}` & { readonly [unknownType]: true };

/** An event of a type without a schema: new types may be added at any time. Its data is as received, and was not checked. */
export type UnknownWebhookEvent = WebhookEventFields<UnknownEventType, unknown>;

/** An event of a webhook; tell them apart by `type`. */
export type WebhookEvent = WebhookEventMap[KnownEventType] | UnknownWebhookEvent;

/** An event that names itself but whose time or data breaks the spec. It spoils no other event of its webhook. */
export interface InvalidWebhookEvent {
  /** Its position in `events` of the webhook, from 0. */
  readonly index: number;
  readonly event_id: string;
  readonly type: string;
  readonly code: "timestamp-invalid" | "data-invalid";
  /** The JSON pointer of the field and its rule, never the received value. */
  readonly detail: string;
  /** The event as received, parsed. */
  readonly raw: unknown;
}

/** A webhook (spec, "Webhook envelope"). Further fields are kept, see {@link allFields}. */
export interface WebhookEnvelope {
  /** 1 to 256 assigned, visible characters in Unicode normalization form C. */
  readonly webhook_id: string;
  /** When the webhook was created. */
  readonly timestamp: WebhookTimestamp;
  /** The valid events in the order received. */
  readonly events: readonly WebhookEvent[];
  /** The events that are not valid, in the order received. */
  readonly invalid: readonly InvalidWebhookEvent[];
}

/**
 * The same object, typed as everything that was received: `allFields(event.data)["reason"]` is a field that the spec does not
 * name, and unknown. For an envelope, an event, or the data of a known event.
 */
export function allFields(received: object): Readonly<Record<string, unknown>> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- any object that was parsed from JSON is one of these
  return received as Readonly<Record<string, unknown>>;
}
