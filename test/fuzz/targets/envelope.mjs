// parseWebhookEnvelope: what is accepted is what JSON.parse reads, event by event; what is refused has a documented code.
import { isGuardError } from "@countersign/core";
import { parseWebhookEnvelope } from "countersign/webhooks";
import { assertProperty, assertSame, attempt, words } from "../property.mjs";
import { judgeJson } from "../reference/json.mjs";

const maxEvents = 5;
const time = '"timestamp":"2024-02-29T23:59:59.123456789Z"';
const event = (type, data, id = "e1") => `{"event_id":"${id}",${time},"type":"${type}","data":${data}}`;
const envelope = (...events) => `{"webhook_id":"w1",${time},"events":[${events.join(",")}]}`;
const reminder = "payment_request.repayment.reminder";

export const seeds = [
  envelope(
    event("buyer.status_changed", '{"buyer_id":"b","old_status":"PENDING","new_status":"ACTIVE","reason":1}'),
  ),
  envelope(
    event("payment_request.repayment.repaid", '{"payment_request_id":"p"}'),
    event("new.type", "[1]", "e2"),
  ),
  envelope(event(reminder, '{"payment_request_id":"p","due_date":"2024-02-29","days_from_due_date":"-7"}')),
  envelope(event(reminder, '{"payment_request_id":"p","due_date":"2023-02-29","days_from_due_date":-7.5}')),
  envelope(`{"event_id":"e","type":"t"}`),
  envelope(...Array.from({ length: 6 }, () => '{"event_id":"e","type":"t"}')),
  envelope('{"type":"t"}'),
  `{"webhook_id":"w1",${time},"events":[],"invalid":[1],"more":{"x":1}}`,
  "[]",
];
export const maxLength = 1500;
export const dictionary = [
  reminder,
  "\xc3\xa9",
  "\xc2\xad",
  `,${event("x", "0")}`,
  ...words`
    buyer.status_changed seller.status_changed payment_request.repayment.repaid "event_id":
    "webhook_id": "type": "data": "events": "invalid": "timestamp": "buyer_id": "seller_id":"s"
    "due_date":"0000-01-01" "days_from_due_date":-0 "index":0 null {} [] "" 2024-02-30
    0000-02-29T00:00:00Z 9999-12-31T23:59:59.999999999Z T24:00:00Z :60Z .0Z .1234567890Z \u0000
    \u200b e\u0301 \ud800 __proto__ , : \
  `,
];

const codes =
  /^(?:json-(?:duplicate-key|empty|forbidden-key|invalid|lone-surrogate|number-range|too-deep|too-many-values)|envelope-invalid)$/;

export function run(input) {
  const { value: envelopeRead, error } = attempt(() => parseWebhookEnvelope(input, { maxEvents }));
  if (error !== undefined) {
    assertProperty(isGuardError(error), "a refusal is a GuardError", { error });
    const status = error.code === "events-too-many" || error.code === "json-too-many-values" ? 413 : 400;
    assertSame(error.status, status, "the status goes with the code");
    assertProperty(error.code === "events-too-many" || codes.test(error.code), "the code is documented", {
      error,
    });
    return error.code;
  }
  const { value: received, faults } = judgeJson(input, 64);
  const { events: _events, ...outside } = received;
  assertProperty(isWhole(outside), "half a character is accepted in an event alone");
  faults.delete("json-lone-surrogate");
  assertSame([...faults], [], "what is accepted is JSON without another fault");
  assertProperty(received.events.length <= maxEvents, "no more events than the limit");
  const { webhook_id: webhookId, timestamp, events, invalid } = envelopeRead;
  assertIdentifier(webhookId, received.webhook_id);
  assertTimestamp(timestamp, received.timestamp);
  for (const name of Object.keys(received)) {
    const isOwn = ["webhook_id", "timestamp", "events", "invalid"].includes(name);
    if (!isOwn) assertSame(envelopeRead[name], received[name], "further fields are kept");
  }
  assertEvents(received.events, events, invalid);
  return `${events.length} ${invalid.length}`;
}

function assertEvents(received, events, invalid) {
  assertSame(events.length + invalid.length, received.length, "each event is valid or invalid");
  const faulty = new Map(invalid.map((fault) => [fault.index, fault]));
  assertSame(faulty.size, invalid.length, "no event is invalid twice");
  const valid = events.values();
  for (const [index, one] of received.entries()) {
    const fault = faulty.get(index);
    if (fault === undefined) {
      assertProperty(isWhole(one), "an event with half a character is invalid");
      assertEvent(valid.next().value, one);
    } else {
      if (fault.event_id !== "") assertIdentifier(fault.event_id, one.event_id);
      if (fault.type !== "") assertIdentifier(fault.type, one.type);
      assertSame(fault.raw, one, "an invalid event is kept as received");
    }
  }
}

function isWhole(value) {
  // JSON.stringify escapes half of a surrogate pair, and nothing else that begins so.
  return !/\\ud[89a-f]/.test(JSON.stringify(value).replaceAll("\\\\", ""));
}

function assertEvent(read, received) {
  assertIdentifier(read.event_id, received.event_id);
  assertIdentifier(read.type, received.type);
  assertTimestamp(read.timestamp, received.timestamp);
  const days =
    received.type === reminder ? { days_from_due_date: Number(received.data.days_from_due_date) + 0 } : {};
  if (received.type === reminder) {
    assertProperty(Number.isSafeInteger(days.days_from_due_date), "days are a whole number");
    assertSame(
      new Date(received.data.due_date).toISOString().slice(0, 10),
      received.data.due_date,
      "the due date exists",
    );
  }
  const data = received.type === reminder ? { ...received.data, ...days } : received.data;
  assertSame(
    { ...read, timestamp: 0, data: read.data },
    { ...received, timestamp: 0, data },
    "an event is as received",
  );
}

function assertIdentifier(read, received) {
  assertSame(read, received, "an identifier is as received");
  const isText = typeof read === "string" && read.length >= 1 && read.length <= 256;
  assertProperty(isText && !/[\p{Cc}\p{Cf}\p{Cs}]/u.test(read), "an identifier is visible text", { read });
  assertSame(read.normalize("NFC"), read, "an identifier has one sequence of code points");
}

function assertTimestamp(read, received) {
  assertSame(read.raw, received, "a timestamp is as received");
  const [, seconds, fraction = ""] = /^(.{19})(?:\.(\d{1,9}))?Z$/.exec(received) ?? [];
  const milliseconds = Date.parse(`${seconds}Z`);
  assertProperty(
    new Date(milliseconds).toISOString().startsWith(seconds),
    "a timestamp names a time that exists",
  );
  const nanoseconds = BigInt(milliseconds) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
  assertSame(read.epochNanoseconds, nanoseconds, "a timestamp is that time to the nanosecond");
  assertSame(
    read.date.getTime(),
    milliseconds + Number(fraction.padEnd(3, "0").slice(0, 3)),
    "a date is rounded down",
  );
}
