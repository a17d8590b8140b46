import { randomUUID } from "node:crypto";
import { formatTimestamp, jsonWithTexts, sampleEventData } from "@countersign/sandbox/protocol";
import { UsageError } from "../command-io.ts";
import { readNamedFile } from "../input.ts";

/** The flags of `countersign webhook` that make up the envelope. Nothing is checked: wrong values are worth sending too. */
export interface EnvelopeFlags {
  readonly file?: string | undefined;
  readonly type: string;
  readonly data?: string | undefined;
  readonly eventId?: string | undefined;
  readonly webhookId?: string | undefined;
  readonly timestamp?: string | undefined;
}

/** Data that an event of this type may have; empty for one that is not known here. */
export function sampleDataOf(type: string): unknown {
  return sampleEventData.get(type) ?? {};
}

/** The bytes to send: those of the file, or an envelope with one event. Throws a UsageError. */
export function readEnvelope({ file, type, data, eventId, webhookId, timestamp }: EnvelopeFlags): Buffer {
  if (file !== undefined) return readNamedFile("--file", file);
  const when = timestamp ?? formatTimestamp(now());
  const event = {
    event_id: eventId ?? randomUUID(),
    timestamp: when,
    type,
    data: undefined,
  };
  const text = data === undefined ? JSON.stringify(sampleDataOf(type)) : jsonText(data);
  const events = `[${jsonWithTexts(event, { data: text })}]`;
  const envelope = { webhook_id: webhookId ?? randomUUID(), timestamp: when, events };
  return Buffer.from(jsonWithTexts(envelope, { events }), "utf8");
}

// Finer than milliseconds, so that two commands that follow each other are not of the same time.
function now(): bigint {
  return BigInt(Date.now()) * 1_000_000n + (process.hrtime.bigint() % 1_000_000n);
}

/** The value of `--data` as it was typed. */
function jsonText(text: string): string {
  parseData(text);
  return text;
}

/** Reads the value of `--data`. Throws a UsageError. */
export function parseData(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError("--data: is not JSON", { cause: error });
  }
}
