import { GuardError, quoteForLog } from "@countersign/guard";

/** A point in time as a webhook writes it. `JSON.stringify` gives `raw` again. */
export interface WebhookTimestamp {
  /** As received: `YYYY-MM-DDThh:mm:ss`, a fraction of up to nine digits or none, `Z`. */
  readonly raw: string;
  /** The same, rounded down to the millisecond: two events can have one `date` and still have an order. */
  readonly date: Date;
  /** Nanoseconds since 1970-01-01T00:00:00Z, negative before. */
  readonly epochNanoseconds: bigint;
}

/**
 * Reads `YYYY-MM-DDThh:mm:ss.fffffffffZ` (spec, "Webhook envelope") with no fraction or one of one to nine digits. The date
 * must exist. Throws a GuardError 400 `timestamp-invalid`.
 */
export function parseTimestamp(raw: string): WebhookTimestamp {
  const timestamp = readTimestamp(raw);
  if (timestamp !== undefined) return timestamp;
  throw new GuardError({
    status: 400,
    code: "timestamp-invalid",
    message: `the timestamp ${typeof raw === "string" ? quoteForLog(raw) : "is no string, it"} ${timestampRule}`,
  });
}

/** What {@link readTimestamp} expects, for messages. */
export const timestampRule =
  "must be a UTC time YYYY-MM-DDThh:mm:ss.fffffffffZ with at most nine fraction digits";

/** {@link parseTimestamp} that gives undefined where that one throws. */
export function readTimestamp(raw: unknown): WebhookTimestamp | undefined {
  if (typeof raw !== "string") return undefined;
  const match = timestampForm.exec(raw);
  if (match === null) return undefined;
  const date = new Date(`${raw.slice(0, 19)}Z`);
  // "2023-02-29" becomes the first of March, and hour 24 the next day.
  if (Number.isNaN(date.getTime()) || date.getUTCDate() !== Number(match[1])) return undefined;
  const nanoseconds = Number((match[2] ?? "").padEnd(9, "0"));
  const epochNanoseconds = BigInt(date.getTime()) * 1_000_000n + BigInt(nanoseconds);
  date.setUTCMilliseconds(Math.floor(nanoseconds / 1_000_000));
  return new Timestamp(raw, date, epochNanoseconds);
}

/** Orders by time, whatever the number of fraction digits: -1 when `a` is earlier, 1 when it is later, 0 when they are equal. */
export function compareTimestamps(a: WebhookTimestamp, b: WebhookTimestamp): -1 | 0 | 1 {
  if (a.epochNanoseconds === b.epochNanoseconds) return 0;
  return a.epochNanoseconds < b.epochNanoseconds ? -1 : 1;
}

/** Whether `text` is `YYYY-MM-DD` and a day of the calendar. */
export function isCalendarDate(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text) && readTimestamp(`${text}T00:00:00Z`) !== undefined;
}

// Second 60 is out: no Date and no count of nanoseconds since 1970 can tell a leap second from the second that follows it.
const timestampForm = /^\d{4}-\d\d-(\d\d)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.(\d{1,9}))?Z$/;

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
