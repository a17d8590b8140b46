import { randomUUID } from "node:crypto";
import { isObject } from "../json-text.ts";
import { formatTimestamp } from "./timestamp.ts";

/** Something that happened at the service and that every endpoint is told about. */
export interface ServiceEvent {
  /** 1 to 256 characters without control characters. Default a random UUID. */
  readonly event_id?: string | undefined;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** When it happened, in nanoseconds since 1970. Default now, later than every event before it. */
  readonly epochNanoseconds?: bigint | undefined;
}

/** What {@link createEnvelope} is given. */
export interface EnvelopeInit {
  /** Default a random UUID. */
  readonly webhookId?: string | undefined;
  readonly events: readonly ServiceEvent[];
  /** When the webhook is created, and when events happened that do not say; nanoseconds since 1970. */
  readonly now: bigint;
}

/** An event with everything that the wire has. */
export interface WireEvent {
  readonly event_id: string;
  /** See {@link formatTimestamp}. */
  readonly timestamp: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The bytes of one webhook. Throws a TypeError on an event that cannot be written. */
export function createEnvelope({ webhookId = randomUUID(), events, now }: EnvelopeInit): Buffer {
  const written = events.map((event) => JSON.stringify(completeEvent(event, now)));
  return joinEnvelope(webhookId, formatTimestamp(now), written);
}

/** An envelope around events that are JSON already: what was written once is sent in these very bytes. */
export function joinEnvelope(webhookId: string, timestamp: string, events: readonly string[]): Buffer {
  const head = `"webhook_id":${JSON.stringify(webhookId)},"timestamp":${JSON.stringify(timestamp)}`;
  return Buffer.from(`{${head},"events":[${events.join(",")}]}`, "utf8");
}

// NUL and lone surrogates would come out of the database as something else.
const identifier = /^[^\p{Cc}\p{Cs}]{1,256}$/u;

/** Fills in what an event leaves open. Throws a TypeError. */
export function completeEvent(event: ServiceEvent, now: bigint): WireEvent {
  const { event_id = randomUUID(), type, data, epochNanoseconds = now } = event;
  if (!isIdentifier(event_id)) {
    throw new TypeError("event_id must be 1 to 256 characters without control characters");
  }
  if (!isIdentifier(type)) {
    throw new TypeError("type of an event must be 1 to 256 characters without control characters");
  }
  if (!isObject(data)) throw new TypeError("data of an event must be an object");
  return { event_id, timestamp: formatTimestamp(epochNanoseconds), type, data };
}

// A pattern alone would take undefined for a text.
function isIdentifier(value: unknown): boolean {
  return typeof value === "string" && identifier.test(value);
}
