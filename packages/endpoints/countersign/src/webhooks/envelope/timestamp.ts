import { quoteForLog } from "@countersign/core";
import { webhookRefusal } from "../refusals.ts";

/** A point in time as a webhook writes it. `JSON.stringify` writes `raw`. */
export interface WebhookTimestamp {
  /** As received: `YYYY-MM-DDThh:mm:ss`, a fraction of up to nine digits or none, `Z`. */
  readonly raw: string;
  /** The same, rounded down to the millisecond: two events can have one `date` and still have an order. */
  readonly date: Date;
  /** Nanoseconds since 1970-01-01T00:00:00Z, negative before. */
  readonly epochNanoseconds: bigint;
}

/** Reads a time of the form of `raw` (spec, "Webhook envelope"). The date must exist. Throws a GuardError 400 `timestamp-invalid`. */
export function parseTimestamp(raw: string): WebhookTimestamp {
  const timestamp = readTimestamp(raw);
  if (timestamp !== undefined) return timestamp;
  const quoted = typeof raw === "string" ? quoteForLog(raw) : "is no string, it";
  throw webhookRefusal("timestamp-invalid", { message: `the timestamp ${quoted} ${timestampRule}` });
}

export const timestampRule =
  "must be a UTC time YYYY-MM-DDThh:mm:ss.fffffffffZ with at most nine fraction digits";

/** {@link parseTimestamp} that returns undefined where that one throws. */
export function readTimestamp(raw: unknown): WebhookTimestamp | undefined {
  if (typeof raw !== "string" || !timestampForm.test(raw)) return undefined;
  const wholeSeconds = epochMilliseconds(raw);
  const nanoseconds = Number(raw.slice(20, -1).padEnd(9, "0"));
  const date = new Date(wholeSeconds + Math.floor(nanoseconds / 1_000_000));
  // The 29th of February 2023 has become the first of March.
  if (date.getUTCDate() !== Number(raw.slice(8, 10))) return undefined;
  return new Timestamp(raw, date, BigInt(wholeSeconds) * 1_000_000n + BigInt(nanoseconds));
}

/** Orders by time. -1: `a` is earlier; 1: it is later; 0: they are equal. */
export function compareTimestamps(a: WebhookTimestamp, b: WebhookTimestamp): -1 | 0 | 1 {
  if (a.epochNanoseconds === b.epochNanoseconds) return 0;
  return a.epochNanoseconds < b.epochNanoseconds ? -1 : 1;
}

/** Whether `text` is `YYYY-MM-DD` and a day of the calendar. */
export function isCalendarDate(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text) && readTimestamp(`${text}T00:00:00Z`) !== undefined;
}

const cycleYears = 400;
const cycleMilliseconds = 146_097 * 86_400_000;

/** The time without its fraction. Two of them are read for each webhook, and Date.parse takes longer. */
function epochMilliseconds(raw: string): number {
  const two = (index: number): number => (raw.charCodeAt(index) - 48) * 10 + raw.charCodeAt(index + 1) - 48;
  // Date.UTC takes the years 0 to 99 for 1900 to 1999: give it the same day of the calendar's next cycle.
  const year = two(0) * 100 + two(2) + cycleYears;
  return Date.UTC(year, two(5) - 1, two(8), two(11), two(14), two(17)) - cycleMilliseconds;
}

// Second 60 is refused: neither a Date nor nanoseconds since 1970 tell a leap second from the next second.
const timestampForm = /^\d{4}-(?:0[1-9]|1[0-2])-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?Z$/;

class Timestamp implements WebhookTimestamp {
  readonly raw: string;
  readonly date: Date;
  readonly epochNanoseconds: bigint;

  constructor(raw: string, date: Date, epochNanoseconds: bigint) {
    this.raw = raw;
    this.date = date;
    this.epochNanoseconds = epochNanoseconds;
  }

  // A bigint would make JSON.stringify(event) throw, in a log line for example.
  toJSON(): string {
    return this.raw;
  }
}
