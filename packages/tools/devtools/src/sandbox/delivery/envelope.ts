import { randomUUID } from "node:crypto";
import type { WebhookEventMap } from "countersign/webhooks";
import { isObject } from "../json-text.ts";

/** Something that happened at the service; every endpoint gets it. */
export interface ServiceEvent {
  /** 1 to 256 characters without control characters. Default a random UUID. */
  readonly event_id?: string | undefined;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** Nanoseconds since 1970. Default now, later than every event before it. */
  readonly epochNanoseconds?: bigint | undefined;
}

interface EnvelopeInit {
  /** Default a random UUID. */
  readonly webhookId?: string | undefined;
  readonly events: readonly ServiceEvent[];
  /** Nanoseconds since 1970; also the default time of the events. */
  readonly now: bigint;
}

export type WireEvent = ReturnType<typeof completeEvent>;

/** Throws a TypeError on an event that cannot be written. */
export function createEnvelope({ webhookId = randomUUID(), events, now }: EnvelopeInit): Buffer {
  const written = events.map((event) => completeEvent(event, now));
  return envelopeOf(webhookId, formatTimestamp(now), written);
}

export function envelopeOf(webhook_id: string, timestamp: string, events: readonly WireEvent[]): Buffer {
  return Buffer.from(JSON.stringify({ webhook_id, timestamp, events }), "utf8");
}

// NUL and lone surrogates would come out of the database as something else.
const identifier = /^[^\p{Cc}\p{Cs}]{1,256}$/u;

/** Throws a TypeError. */
export function completeEvent(event: ServiceEvent, now: bigint) {
  const { event_id = randomUUID(), type, data, epochNanoseconds = now } = event;
  for (const [name, value] of Object.entries({ event_id, "type of an event": type })) {
    if (!isIdentifier(value))
      throw new TypeError(`${name} must be 1 to 256 characters without control characters`);
  }
  if (!isObject(data)) throw new TypeError("data of an event must be an object");
  return { event_id, timestamp: formatTimestamp(epochNanoseconds), type, data };
}

// A pattern alone would take undefined for a text.
function isIdentifier(value: unknown): boolean {
  return typeof value === "string" && identifier.test(value);
}

export const sampleEventData: ReadonlyMap<string, ServiceEvent["data"]> = new Map(
  Object.entries({
    "buyer.status_changed": { buyer_id: "buyer-1", old_status: "PENDING", new_status: "ACTIVE" },
    "seller.status_changed": { seller_id: "seller-1", old_status: "PENDING", new_status: "ACTIVE" },
    "payment_request.repayment.repaid": { payment_request_id: "request-1" },
    "payment_request.repayment.reminder": {
      payment_request_id: "request-1",
      due_date: "2030-01-31",
      days_from_due_date: -3,
    },
  } satisfies Readonly<Record<keyof WebhookEventMap, object>>),
);

const nanosecondsPerSecond = 1_000_000_000n;
const nanosecondsPerMillisecond = 1_000_000n;

/** `YYYY-MM-DDThh:mm:ss.fffffffffZ`, always with nine fraction digits. Throws a RangeError outside the years 0 to 9999. */
export function formatTimestamp(epochNanoseconds: bigint): string {
  // Of a time before 1970, too, a positive part.
  const rest = epochNanoseconds % nanosecondsPerSecond;
  const fraction = rest < 0n ? rest + nanosecondsPerSecond : rest;
  const seconds = (epochNanoseconds - fraction) / nanosecondsPerSecond;
  const text = new Date(Number(seconds) * 1000).toISOString();
  if (text.length !== "2024-01-02T03:04:05.000Z".length) {
    throw new RangeError("formatTimestamp: a timestamp has a year of four digits");
  }
  return `${text.slice(0, 19)}.${String(fraction).padStart(9, "0")}Z`;
}

/** Nanoseconds since 1970 that grow with every call: two events of the same millisecond keep their order. */
export function createNanosecondClock(clock: () => number): () => bigint {
  let last = 0n;
  return () => {
    const now =
      BigInt(Math.floor(clock())) * nanosecondsPerMillisecond +
      (process.hrtime.bigint() % nanosecondsPerMillisecond);
    last = now > last ? now : last + 1n;
    return last;
  };
}
