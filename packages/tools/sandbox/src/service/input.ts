import { randomUUID } from "node:crypto";
import { parseTimestamp, type PartyStatus } from "@countersign/webhooks";
import { z } from "zod";
import { deliveryStates } from "../delivery/delivery.ts";
import type { DeliveryFilter, EndpointRegistration, ServiceEvent } from "../delivery/types.ts";
import { tamperedWebhookParts, type TamperedWebhookPart } from "../delivery/webhook-request.ts";
import type { PayoutOrder } from "../page/payout-desk.ts";
import { isObjectText } from "../json-text.ts";
import { payoutVariants } from "../payout-variants.ts";
import { partyStatuses } from "./parties.ts";
import { SandboxError } from "./sandbox-error.ts";

/** What a payment request is made from. */
export interface NewPaymentRequest {
  /** 1 to 256 characters without control characters. Default a random UUID. */
  readonly payment_request_id?: string | undefined;
  /** `YYYY-MM-DD`, a day of the calendar. */
  readonly due_date: string;
}

/** An event that has its id. */
export interface IdentifiedEvent extends ServiceEvent {
  readonly event_id: string;
}

// Control characters and lone surrogates would not come out of the database, or through a URL, as they went in.
const identifier = z
  .string()
  .regex(/^[^\p{Cc}\p{Cs}]{1,256}$/u, "must be 1 to 256 characters without control characters");

const statusChange = z.strictObject({
  status: z.enum(partyStatuses),
});

const newPaymentRequest = z.strictObject({
  payment_request_id: identifier.optional(),
  due_date: z.iso.date("must be YYYY-MM-DD, a day of the calendar"),
});

const registration = z.strictObject({
  url: z.string(),
  auth_username: z.string(),
  auth_password: z.string(),
  signature_secret: z.string(),
});

const rawEvent = z.strictObject({
  event_id: identifier.default(() => randomUUID()),
  type: identifier,
  data: z.record(z.string(), z.unknown()),
  timestamp: z.string().optional(),
});

const severalEvents = z.strictObject({ events: z.array(rawEvent).min(1).max(10_000) });

const deliveryFilter = z.strictObject({
  state: z.enum(deliveryStates).optional(),
  event_id: identifier.optional(),
  limit: z
    .string()
    .regex(/^[1-9]\d{0,3}$/, "must be an integer from 1 to 9999")
    .optional(),
  before: z
    .string()
    .regex(/^[1-9]\d{0,14}$/, "must be the number of a delivery")
    .optional(),
});

const slice = z.strictObject({
  limit: z
    .string()
    .regex(/^(?:[1-9]\d?|100)$/, "must be an integer from 1 to 100")
    .optional(),
  offset: z
    .string()
    .regex(/^\d{1,9}$/, "must be an integer from 0")
    .optional(),
});

const spoil = z.strictObject({ part: z.enum(tamperedWebhookParts) });

const text = z.string().max(10_000);

const objectText = text.refine(isObjectText, "must be an object, or a text that is JSON of one");

const payoutOrder = z.strictObject({
  url: text,
  variant: z.enum(payoutVariants.map(({ variant }) => variant)).default("plain"),
  count: z.int().min(2).max(100).optional(),
  idempotency_key: text.optional(),
  business_id: text.optional(),
  iban: text.optional(),
  bic: text.optional(),
  name: text.optional(),
  amount: z.union([z.record(z.string(), z.unknown()), objectText]).optional(),
  reference: text.optional(),
  reference_field: text.optional(),
});

const resend = z.strictObject({ id: identifier });

const confirmation = z.record(z.string(), z.unknown());

/** The id of a buyer, seller or payment request. Throws a SandboxError, like everything here. */
export function identifierOf(id: unknown): string {
  return parse(identifier, id, "id");
}

/** Reads `{ status }`. */
export function statusOf(body: unknown): PartyStatus {
  return parse(statusChange, body).status;
}

/** Reads `{ payment_request_id?, due_date }`. */
export function newPaymentRequestOf(body: unknown): NewPaymentRequest {
  return parse(newPaymentRequest, body);
}

/** Reads the body of the spec's "Create webhook endpoint". */
export function registrationOf(body: unknown): EndpointRegistration {
  const { url, auth_username, auth_password, signature_secret } = parse(registration, body);
  return { url, username: auth_username, password: auth_password, secret: signature_secret };
}

/** Reads one event, `{ type, data, event_id?, timestamp? }`, or several as `{ events: [...] }`. */
export function eventsOf(body: unknown): readonly IdentifiedEvent[] {
  const several = typeof body === "object" && body !== null && "events" in body;
  return several
    ? parse(severalEvents, body).events.map(serviceEvent)
    : [serviceEvent(parse(rawEvent, body))];
}

/** Reads the query `state`, `event_id`, `limit`. */
export function deliveryFilterOf(query: unknown): DeliveryFilter {
  const { state, event_id: eventId, limit, before } = parse(deliveryFilter, query);
  return { state, eventId, limit: numberOf(limit), before: numberOf(before) };
}

/** Reads the query `limit`, `offset`: which part of a list. Default the first 20. */
export function sliceOf(query: unknown): { readonly limit: number; readonly offset: number } {
  const { limit, offset } = parse(slice, query);
  return { limit: numberOf(limit) ?? 20, offset: numberOf(offset) ?? 0 };
}

/** The number of a delivery or payout; NaN, which none has, for anything else. */
export function deliveryNumberOf(id: unknown): number {
  return typeof id === "string" && /^[1-9]\d{0,14}$/.test(id) ? Number(id) : Number.NaN;
}

/** Reads `{ part }`, what is to be spoilt of a webhook. */
export function spoilOf(body: unknown): TamperedWebhookPart {
  return parse(spoil, body).part;
}

/** Reads `{ url, variant?, count? }` and the fields of an instruction. */
export function payoutOrderOf(body: unknown): PayoutOrder {
  const { url, variant, count, ...given } = parse(payoutOrder, body);
  const { idempotency_key, business_id, reference_field, ...fields } = given;
  return {
    url,
    variant,
    count,
    fields: {
      ...fields,
      idempotencyKey: idempotency_key,
      businessId: business_id,
      referenceField: reference_field,
    },
  };
}

function numberOf(digits: string | undefined): number | undefined {
  return digits === undefined ? undefined : Number(digits);
}

/** Reads `{ id }`: of a delivery, a webhook or an event. */
export function resendOf(body: unknown): string {
  return parse(resend, body).id;
}

/** Reads a payout confirmation; the spec does not show its fields. */
export function confirmationOf(body: unknown): Readonly<Record<string, unknown>> {
  return parse(confirmation, body);
}

function serviceEvent({ timestamp, ...event }: z.infer<typeof rawEvent>): IdentifiedEvent {
  return timestamp === undefined ? event : { ...event, epochNanoseconds: epochNanosecondsOf(timestamp) };
}

function epochNanosecondsOf(timestamp: string): bigint {
  try {
    return parseTimestamp(timestamp).epochNanoseconds;
  } catch (error) {
    throw new SandboxError("invalid-request", "timestamp: must be YYYY-MM-DDThh:mm:ss.fffffffffZ", {
      cause: error,
    });
  }
}

// Messages of zod name what was expected and never what was received, which can be a secret.
function parse<T>(schema: z.ZodType<T>, value: unknown, name?: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const place = [name ?? [], issue?.path ?? []].flat().join(".");
  const message = issue?.message ?? "is not valid";
  throw new SandboxError("invalid-request", place === "" ? message : `${place}: ${message}`);
}
