import { randomUUID } from "node:crypto";
import { parseTimestamp, type PartyStatus } from "countersign/webhooks";
import { z } from "zod";
import { deliveryStates, type DeliveryFilter } from "../delivery/delivery.ts";
import type { ServiceEvent } from "../delivery/envelope.ts";
import {
  tamperedWebhookParts,
  type EndpointRegistration,
  type TamperedWebhookPart,
} from "../delivery/webhook-request.ts";
import { isObject, isObjectText } from "../json-text.ts";
import type { PayoutOrder } from "../page/payout-desk.ts";
import { payoutVariants } from "../payout-variants.ts";
import { SandboxError } from "./sandbox-error.ts";

// Control characters and lone surrogates would not come out of the database, or through a URL, as they went in.
const identifier = z
  .string()
  .regex(/^[^\p{Cc}\p{Cs}]{1,256}$/u, "must be 1 to 256 characters without control characters");

const data = z.record(z.string(), z.unknown());

const text = z.string().max(10_000);

const search = z.string().max(256).optional();

function digits(pattern: RegExp, expected: string): z.ZodType<number | undefined> {
  return z.string().regex(pattern, expected).transform(Number).optional();
}

/** Throws a SandboxError. */
type Reader<T> = (value: unknown) => T;

// Messages of zod name what was expected and never what was received, which can be a secret.
function reader<T>(schema: z.ZodType<T>, name: readonly string[] = []): Reader<T> {
  return (value) => {
    const result = schema.safeParse(value);
    if (result.success) return result.data;
    const [issue] = result.error.issues;
    const place = [...name, ...(issue?.path ?? [])].join(".");
    const message = issue?.message ?? "is not valid";
    throw new SandboxError("invalid-request", place === "" ? message : `${place}: ${message}`);
  };
}

export const identifierOf: Reader<string> = reader(identifier, ["id"]);

/** In the spec's order. */
export const partyStatuses: readonly PartyStatus[] = [
  "PENDING",
  "ACTIVE",
  "INACTIVE",
  "REJECTED",
  "SUSPENDED",
];

export const statusOf: Reader<PartyStatus> = reader(
  z.strictObject({ status: z.enum(partyStatuses) }).transform(({ status }) => status),
);

export interface NewPaymentRequest {
  /** 1 to 256 characters without control characters. Default a random UUID. */
  readonly payment_request_id?: string | undefined;
  /** `YYYY-MM-DD`, a day of the calendar. */
  readonly due_date: string;
}

export const newPaymentRequestOf: Reader<NewPaymentRequest> = reader(
  z.strictObject({
    payment_request_id: identifier.optional(),
    due_date: z.iso.date("must be YYYY-MM-DD, a day of the calendar"),
  }),
);

/** The body of the spec's "Create webhook endpoint". */
export const registrationOf: Reader<EndpointRegistration> = reader(
  z
    .strictObject({
      url: z.string(),
      auth_username: z.string(),
      auth_password: z.string(),
      signature_secret: z.string(),
    })
    .transform(({ url, auth_username, auth_password, signature_secret }) => ({
      url,
      username: auth_username,
      password: auth_password,
      secret: signature_secret,
    })),
);

export const deliveryFilterOf: Reader<DeliveryFilter> = reader(
  z
    .strictObject({
      state: z.enum(deliveryStates).optional(),
      event_id: identifier.optional(),
      search,
      limit: digits(/^[1-9]\d{0,3}$/, "must be an integer from 1 to 9999"),
      before: digits(/^[1-9]\d{0,14}$/, "must be the number of a delivery"),
    })
    .transform(({ event_id: eventId, ...filter }) => ({ ...filter, eventId })),
);

const slice = {
  limit: digits(/^(?:[1-9]\d?|100)$/, "must be an integer from 1 to 100").default(20),
  offset: digits(/^\d{1,9}$/, "must be an integer from 0").default(0),
};

export interface Slice {
  readonly limit: number;
  readonly offset: number;
}

/** The query `limit`, `offset`: which part of a list. Default the first 20. */
export const sliceOf: Reader<Slice> = reader(z.strictObject(slice));

export const payoutSliceOf: Reader<Slice & { readonly search?: string | undefined }> = reader(
  z.strictObject({ ...slice, search }),
);

export const spoilOf: Reader<TamperedWebhookPart> = reader(
  z.strictObject({ part: z.enum(tamperedWebhookParts) }).transform(({ part }) => part),
);

export const resendOf: Reader<string> = reader(z.strictObject({ id: identifier }).transform(({ id }) => id));

/** A payout confirmation; the spec does not show its fields. */
export const confirmationOf: Reader<Readonly<Record<string, unknown>>> = reader(data);

export const payoutOrderOf: Reader<PayoutOrder> = reader(
  z
    .strictObject({
      url: text,
      variant: z.enum(payoutVariants.map(({ variant }) => variant)).default("plain"),
      count: z.int().min(2).max(100).optional(),
      idempotency_key: text.optional(),
      business_id: text.optional(),
      iban: text.optional(),
      bic: text.optional(),
      name: text.optional(),
      amount: z
        .union([data, text.refine(isObjectText, "must be an object, or a text that is JSON of one")])
        .optional(),
      reference: text.optional(),
      reference_field: text.optional(),
    })
    .transform(({ url, variant, count, idempotency_key, business_id, reference_field, ...fields }) => ({
      url,
      variant,
      count,
      fields: {
        ...fields,
        idempotencyKey: idempotency_key,
        businessId: business_id,
        referenceField: reference_field,
      },
    })),
);

const event = z.strictObject({
  event_id: identifier.default(() => randomUUID()),
  type: identifier,
  data,
  timestamp: z.string().optional(),
});
const readEvent = reader(event);
const readEvents = reader(z.strictObject({ events: z.array(event).min(1).max(10_000) }));

/** One event, `{ type, data, event_id?, timestamp? }`, or several as `{ events: [...] }`. */
export function eventsOf(body: unknown): readonly (ServiceEvent & { readonly event_id: string })[] {
  const events = isObject(body) && "events" in body ? readEvents(body).events : [readEvent(body)];
  return events.map(({ timestamp, ...given }) =>
    timestamp === undefined
      ? given
      : Object.assign(given, { epochNanoseconds: epochNanosecondsOf(timestamp) }),
  );
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

/** The number of a delivery or payout; NaN, which none has, for anything else. */
export function deliveryNumberOf(id: unknown): number {
  return typeof id === "string" && /^[1-9]\d{0,14}$/.test(id) ? Number(id) : Number.NaN;
}
