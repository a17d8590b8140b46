import type { WebhookTimestamp } from "./timestamp.ts";

/**
 * What every event has (spec, "Event object"). Further fields are kept, but are not in the type, where a misspelt name would
 * pass for one: read them from a copy, `const fields: Record<string, unknown> = { ...event.data }`.
 */
type WebhookEventFields<Type extends string, Data> = {
  /** 1 to 256 assigned, visible characters in Unicode normalization form C. */
  readonly event_id: string;
  /** When the event occurred: the source of truth for the order of events. */
  readonly timestamp: WebhookTimestamp;
  readonly type: Type;
  readonly data: Data;
};

export type PartyStatus = "PENDING" | "ACTIVE" | "INACTIVE" | "REJECTED" | "SUSPENDED";

/** Values that the spec does not name pass through. */
type ReceivedPartyStatus = PartyStatus | (string & {});

type BuyerStatusChanged = WebhookEventFields<
  "buyer.status_changed",
  {
    readonly buyer_id: string;
    readonly old_status: ReceivedPartyStatus;
    readonly new_status: ReceivedPartyStatus;
  }
>;

type SellerStatusChanged = WebhookEventFields<
  "seller.status_changed",
  {
    readonly seller_id: string;
    readonly old_status: ReceivedPartyStatus;
    readonly new_status: ReceivedPartyStatus;
  }
>;

/** A payment request was fully repaid by the buyer and can be considered closed. */
type PaymentRequestRepaid = WebhookEventFields<
  "payment_request.repayment.repaid",
  { readonly payment_request_id: string }
>;

/** A payment request is near or past its repayment deadline. */
type PaymentRequestReminder = WebhookEventFields<
  "payment_request.repayment.reminder",
  {
    readonly payment_request_id: string;
    readonly due_date: string;
    /** Calendar days since the due date, negative before it. An integer, whether it came as a number or as a string. */
    readonly days_from_due_date: number;
  }
>;

export interface WebhookEventMap {
  "buyer.status_changed": BuyerStatusChanged;
  "seller.status_changed": SellerStatusChanged;
  "payment_request.repayment.repaid": PaymentRequestRepaid;
  "payment_request.repayment.reminder": PaymentRequestReminder;
}

export type KnownEventType = keyof WebhookEventMap;

declare const unknownType: unique symbol;

/** Any string but the known types, marked so that a `switch` narrows. For a type of yours: `const type: string = event.type`. */
// A template: the compiler would take a marked plain string for each of the known types.
// oxlint-disable-next-line typescript/no-explicit-any -- a template of string is string again
type UnknownEventType = `${any}` & { readonly [unknownType]: true };

/** An event of a type without a schema: new types may be added at any time. Its data is unchecked, as received. */
export type UnknownWebhookEvent = WebhookEventFields<UnknownEventType, unknown>;

/** An event of a webhook; tell them apart by `type`. */
export type WebhookEvent = WebhookEventMap[KnownEventType] | UnknownWebhookEvent;

/** A malformed event: it breaks the spec, or holds half of a surrogate pair. The other events of its webhook are not affected. */
export interface InvalidWebhookEvent {
  /** Its position in `events` of the webhook, from 0. */
  readonly index: number;
  /** Empty if it is missing or no valid identifier; `type` likewise. */
  readonly event_id: string;
  readonly type: string;
  readonly code: "timestamp-invalid" | "data-invalid";
  /** The JSON pointer of the field and its rule, never the received value. */
  readonly detail: string;
  readonly raw: unknown;
}

/** A webhook (spec, "Webhook envelope"). Further fields are kept, as in events. */
export interface WebhookEnvelope {
  /** 1 to 256 assigned, visible characters in Unicode normalization form C. */
  readonly webhook_id: string;
  readonly timestamp: WebhookTimestamp;
  readonly events: readonly WebhookEvent[];
  readonly invalid: readonly InvalidWebhookEvent[];
}
