import { isGuardError } from "@countersign/core";
import { describe, expect, test } from "@jest/globals";
import { parseWebhookEnvelope, type WebhookEnvelope } from "countersign/webhooks";
import { bodyOf, buyerEvent, envelopeOf, reminderEvent } from "./envelope-body.ts";

function parse(value: unknown): WebhookEnvelope {
  return parseWebhookEnvelope(bodyOf(value));
}

function refusalOf(bytes: Uint8Array): string {
  try {
    parseWebhookEnvelope(bytes);
    return "accepted";
  } catch (error) {
    return isGuardError(error) ? `${error.status} ${error.code}: ${error.message}` : "unexpected error";
  }
}

describe("parseWebhookEnvelope", () => {
  test("reads the body of the known answer of the signature, whose event misses its fields", () => {
    const text =
      '{"webhook_id":"wh_1","timestamp":"2024-01-02T03:04:05.123456789Z","events":[{"event_id":"ev_1",' +
      '"timestamp":"2024-01-02T03:04:05.1Z","type":"buyer.status_changed","data":{"amount":"10.10"}}]}';
    const envelope = parseWebhookEnvelope(Buffer.from(text));
    expect(envelope.webhook_id).toBe("wh_1");
    expect(envelope.timestamp.epochNanoseconds).toBe(1_704_164_645_123_456_789n);
    expect(envelope.events).toEqual([]);
    expect(envelope.invalid).toMatchObject([{ index: 0, event_id: "ev_1", code: "data-invalid" }]);
  });

  test.each([
    ["buyer.status_changed", { buyer_id: "b_1", old_status: "PENDING", new_status: "ACTIVE" }],
    ["seller.status_changed", { seller_id: "s_1", old_status: "ACTIVE", new_status: "SUSPENDED" }],
    ["payment_request.repayment.repaid", { payment_request_id: "p_1" }],
    [
      "payment_request.repayment.reminder",
      { payment_request_id: "p_1", due_date: "2024-02-29", days_from_due_date: -3 },
    ],
    ["invoice.created", { anything: [1, null] }],
  ])("reads an event of type %s", (type, data) => {
    const { events, invalid } = parse(envelopeOf({ ...buyerEvent, type, data }));
    expect(invalid).toEqual([]);
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ event_id: "ev_1", type, data });
    expect(events[0]?.timestamp.raw).toBe(buyerEvent.timestamp);
  });

  test("reads a webhook without events", () => {
    expect(parse(envelopeOf())).toMatchObject({ events: [], invalid: [] });
  });

  test("keeps further fields of the envelope, of events and of their data, and gives the same JSON again", () => {
    const event = { ...buyerEvent, trace: { id: 1 }, data: { ...buyerEvent.data, reason: ["manual"] } };
    const unknown = { ...event, event_id: "ev_2", type: "invoice.created" };
    const body = { ...envelopeOf(event, unknown), environment: "production" };
    const { invalid, ...envelope } = parse(body);
    expect(invalid).toEqual([]);
    expect(JSON.parse(JSON.stringify(envelope))).toEqual(body);
  });

  test("keeps the order of the array, and both of two events with one id", () => {
    const ids = ["ev_3", "ev_1", "ev_2", "ev_1"];
    const { events } = parse(envelopeOf(...ids.map((event_id) => ({ ...buyerEvent, event_id }))));
    expect(events.map(({ event_id }) => event_id)).toEqual(ids);
  });

  test.each(["constructor", "toString", "hasOwnProperty", "__proto__", "buyer.status_changed "])(
    "takes %s for an unknown type",
    (type) => {
      const { events, invalid } = parse(envelopeOf({ ...buyerEvent, type, data: 1 }));
      expect(invalid).toEqual([]);
      expect(events).toMatchObject([{ type, data: 1 }]);
    },
  );

  test("asks for no data where the type is unknown", () => {
    const { data: _data, ...event } = { ...buyerEvent, type: "ping" };
    expect(parse(envelopeOf(event)).events).toMatchObject([{ type: "ping" }]);
  });

  test("does not let a further field pass for the list of invalid events", () => {
    const body = { ...envelopeOf({ ...buyerEvent, data: {} }), invalid: [] };
    expect(parse(body).invalid).toHaveLength(1);
    expect(parse({ ...envelopeOf(), invalid: [{ index: 0 }] }).invalid).toEqual([]);
  });

  test("passes a status that the spec does not name", () => {
    const event = { ...buyerEvent, data: { ...buyerEvent.data, new_status: "FROZEN" } };
    expect(parse(envelopeOf(event)).events).toMatchObject([{ data: { new_status: "FROZEN" } }]);
  });

  test("reads a view into a larger buffer", () => {
    const body = bodyOf(envelopeOf(buyerEvent));
    const large = new Uint8Array(body.length + 20).fill(0x7b);
    large.set(body, 10);
    expect(parseWebhookEnvelope(large.subarray(10, 10 + body.length)).events).toHaveLength(1);
  });
});

describe("days_from_due_date", () => {
  const withDays = (text: string): WebhookEnvelope =>
    parseWebhookEnvelope(
      Buffer.from(
        JSON.stringify(envelopeOf(reminderEvent)).replace(
          '"days_from_due_date":-3',
          `"days_from_due_date":${text}`,
        ),
      ),
    );

  test.each([
    ["-3", -3],
    ["0", 0],
    ["-0", 0],
    ["12", 12],
    ["3.0", 3],
    ['"-3"', -3],
    ['"0"', 0],
    ['"-0"', 0],
    ['"12"', 12],
    ["9007199254740991", 9007199254740991],
  ])("takes %s", (text, days) => {
    const [event] = withDays(text).events;
    expect((event as { data: { days_from_due_date: unknown } }).data.days_from_due_date).toBe(days);
  });

  test.each([
    ["a fraction", "1.5"],
    ["a fraction as text", '"1.5"'],
    ["an empty text", '""'],
    ["white space", '" "'],
    ["white space around", '" 3"'],
    ["a plus sign", '"+3"'],
    ["leading zeros", '"007"'],
    ["an exponent as text", '"1e3"'],
    ["hex", '"0x10"'],
    ["a line break behind", '"3\\n"'],
    ["a word", '"three"'],
    ["digits that are not ASCII", '"٣"'],
    ["more than a double holds", "9007199254740992"],
    ["more than a double holds, as text", '"-9007199254740993"'],
    ["true", "true"],
    ["null", "null"],
    ["an array", "[3]"],
  ])("makes the event invalid when it is %s", (_title, text) => {
    const { events, invalid } = withDays(text);
    expect(events).toEqual([]);
    expect(invalid).toMatchObject([
      {
        code: "data-invalid",
        detail: "/events/0/data/days_from_due_date must be an integer, or a string that holds one",
      },
    ]);
  });
});

describe("an invalid event", () => {
  test("spoils no other, and says where it stood and what is wrong", () => {
    const bad = { ...buyerEvent, event_id: "ev_2", timestamp: "yesterday", data: { buyer_id: 7 } };
    const last = { ...buyerEvent, event_id: "ev_3" };
    const { events, invalid } = parse(envelopeOf(buyerEvent, bad, last));
    expect(events.map(({ event_id }) => event_id)).toEqual(["ev_1", "ev_3"]);
    expect(invalid).toEqual([
      {
        index: 1,
        event_id: "ev_2",
        type: "buyer.status_changed",
        code: "timestamp-invalid",
        detail: expect.stringMatching(
          /^\/events\/1\/timestamp must be .+; \/events\/1\/data\/buyer_id must be .+; \/events\/1\/data\/old_status must be/,
        ),
        raw: bad,
      },
    ]);
  });

  test("is shown as it came, though a field of its data is read in another form", () => {
    const bad = {
      ...reminderEvent,
      timestamp: "yesterday",
      data: { ...reminderEvent.data, days_from_due_date: "-3" },
    };
    expect(parse(envelopeOf(bad)).invalid.map(({ raw }) => raw)).toEqual([bad]);
  });

  const none = undefined;

  test.each<[string, object, pointer: string]>([
    ["a timestamp that is no string", { ...buyerEvent, timestamp: 1 }, "/timestamp"],
    ["no timestamp", { ...buyerEvent, timestamp: none }, "/timestamp"],
    ["a bad timestamp", { ...buyerEvent, type: "ping", timestamp: "2024-02-30T00:00:00Z" }, "/timestamp"],
    ["no data", { ...buyerEvent, data: none }, "/data"],
    ["data null", { ...buyerEvent, data: null }, "/data"],
    ["an array for data", { ...buyerEvent, data: [] }, "/data"],
    ["no buyer_id", buyerData({ buyer_id: none }), "/data/buyer_id"],
    ["an empty buyer_id", buyerData({ buyer_id: "" }), "/data/buyer_id"],
    ["a buyer_id of 257", buyerData({ buyer_id: "a".repeat(257) }), "/data/buyer_id"],
    ["no old_status", buyerData({ old_status: none }), "/data/old_status"],
    ["a number for new_status", buyerData({ new_status: 1 }), "/data/new_status"],
    ["an empty new_status", buyerData({ new_status: "" }), "/data/new_status"],
    ["a buyer_id of a seller", { ...buyerEvent, type: "seller.status_changed" }, "/data/seller_id"],
    ["a due date that does not exist", reminderData({ due_date: "2023-02-29" }), "/data/due_date"],
    ["a due date with a time", reminderData({ due_date: "2023-02-28T00:00:00Z" }), "/data/due_date"],
    ["no payment_request_id", reminderData({ payment_request_id: none }), "/data/payment_request_id"],
    ["no days_from_due_date", reminderData({ days_from_due_date: none }), "/data/days_from_due_date"],
  ])("is one with %s", (_title, event, pointer) => {
    const { events, invalid } = parse(envelopeOf(event));
    expect(events).toEqual([]);
    expect(invalid).toHaveLength(1);
    expect(invalid[0]?.code).toBe(pointer === "/timestamp" ? "timestamp-invalid" : "data-invalid");
    expect(invalid[0]?.detail).toMatch(new RegExp(`^/events/0${pointer} must be [^;]+$`));
  });

  const eventId = "/events/1/event_id must be a string";
  const type = "/events/1/type must be a string";

  test.each<[string, unknown, fault: string, event_id: string, type: string]>([
    ["null", null, "/events/1 must be an object", "", ""],
    ["a number", 1, "/events/1 must be an object", "", ""],
    ["an array", [], "/events/1 must be an object", "", ""],
    ["an empty object", {}, eventId, "", ""],
    ["no event_id", { ...buyerEvent, event_id: none }, eventId, "", buyerEvent.type],
    ["an empty event_id", { ...buyerEvent, event_id: "" }, eventId, "", buyerEvent.type],
    ["a number for event_id", { ...buyerEvent, event_id: 1 }, eventId, "", buyerEvent.type],
    ["an event_id of 257", { ...buyerEvent, event_id: "a".repeat(257) }, eventId, "", buyerEvent.type],
    ["NUL in an event_id", { ...buyerEvent, event_id: "a\0b" }, eventId, "", buyerEvent.type],
    ["no type", { ...buyerEvent, type: none }, type, "ev_1", ""],
    ["an empty type", { ...buyerEvent, type: "" }, type, "ev_1", ""],
    ["an array for a type", { ...buyerEvent, type: ["buyer.status_changed"] }, type, "ev_1", ""],
  ])("is one with %s, and keeps what it has of its identity", (_title, event, fault, event_id, its) => {
    const good = { ...buyerEvent, event_id: "good" };
    const { events, invalid } = parse(envelopeOf(good, event, { ...good, event_id: "good_2" }));
    expect(events.map((one) => one.event_id)).toEqual(["good", "good_2"]);
    expect(invalid).toMatchObject([{ index: 1, event_id, type: its, code: "data-invalid" }]);
    expect(invalid[0]?.detail).toContain(fault);
    expect(invalid[0]?.raw).toEqual(JSON.parse(JSON.stringify(event)));
  });

  test.each([
    ["a text of its data", '"new_status":"ACTIVE"', String.raw`"new_status":"\ud83d"`],
    ["a further field", '"type":', String.raw`"note":["\ude00\ud83d"],"type":`],
    ["a name of its data", '"data":{', String.raw`"data":{"\ud800":1,`],
    ["the type of no schema", '"type":"buyer.status_changed"', String.raw`"type":"ping","more":"\udfff"`],
  ])("is one with half of a surrogate pair in %s", (_title, from, to) => {
    const good = JSON.stringify({ ...buyerEvent, event_id: "good" });
    const bad = JSON.stringify(buyerEvent).replace(from, to);
    const text = JSON.stringify(envelopeOf()).replace("[]", `[${bad},${good}]`);
    const { events, invalid } = parseWebhookEnvelope(Buffer.from(text));
    expect(events.map(({ event_id }) => event_id)).toEqual(["good"]);
    const detail = expect.stringMatching(/^\/events\/0 must not hold half of a surrogate pair/);
    expect(invalid).toEqual([
      expect.objectContaining({ index: 0, event_id: "ev_1", code: "data-invalid", detail }),
    ]);
  });

  test("is none with both halves of a surrogate pair, however they are written", () => {
    const bodies = [String.raw`\ud83d\ude00`, "😀"].map((text) =>
      JSON.stringify(envelopeOf(buyerEvent)).replace("ACTIVE", text),
    );
    for (const body of bodies) {
      expect(parseWebhookEnvelope(Buffer.from(body)).events).toMatchObject([{ data: { new_status: "😀" } }]);
    }
  });

  test("is told without any value of it", () => {
    const { invalid } = parse(envelopeOf(buyerData({ buyer_id: "test-secret\n" })));
    expect(invalid[0]?.detail).not.toMatch(/test-secret/);
  });
});

describe("an envelope", () => {
  const good = envelopeOf(buyerEvent);

  const webhookId = "/webhook_id must be a string of 1 to 256";

  test.each([
    ["null", null, "the body must be an object"],
    ["an array", [], "the body must be an object"],
    ["a number", 1, "the body must be an object"],
    ["no webhook_id", { ...good, webhook_id: undefined }, webhookId],
    ["an empty webhook_id", { ...good, webhook_id: "" }, webhookId],
    ["a control character in webhook_id", { ...good, webhook_id: "wh\u0085" }, webhookId],
    ["no timestamp", { ...good, timestamp: undefined }, "/timestamp must be a UTC time"],
    ["a bad timestamp", { ...good, timestamp: "2024-01-02" }, "/timestamp must be a UTC time"],
    ["no events", { ...good, events: undefined }, "/events must be an array"],
    ["an object of events", { ...good, events: { 0: buyerEvent } }, "/events must be an array"],
  ])("is refused with %s", (_title, body, fault) => {
    expect(refusalOf(bodyOf(body))).toContain(
      `400 envelope-invalid: the webhook breaks the schema: ${fault}`,
    );
  });

  test("is accepted with identifiers of 256 characters", () => {
    const event_id = "a".repeat(256);
    expect(refusalOf(bodyOf({ ...envelopeOf({ ...buyerEvent, event_id }), webhook_id: event_id }))).toBe(
      "accepted",
    );
  });

  test.each([
    [{ ...envelopeOf(), webhook_id: 1, timestamp: 1 }, "/webhook_id must be a string", " (2 faults in all)"],
    [{ ...envelopeOf(), webhook_id: 1 }, "/webhook_id must be a string", ""],
  ])("counts its faults: %j", (body, fault, count) => {
    const refusal = refusalOf(bodyOf(body));
    expect(refusal).toContain(`400 envelope-invalid: the webhook breaks the schema: ${fault}`);
    expect(refusal.endsWith(count === "" ? "form C" : count)).toBe(true);
  });

  test.each([
    ["no bytes", "", "json-empty"],
    ["a byte that is no UTF-8", Buffer.from([0x7b, 0xff, 0x7d]), "json-invalid"],
    [
      "buyer_id twice",
      withText('"buyer_id":"b_1"', '"buyer_id":"b_0","buyer_id":"b_1"'),
      "json-duplicate-key",
    ],
    ["__proto__ in data", withText('"buyer_id"', '"__proto__":{},"buyer_id"'), "json-forbidden-key"],
    ["65 levels", withText('"b_1"', `${"[".repeat(62)}${"]".repeat(62)}`), "json-too-deep"],
    ["a number beyond a double", withText('"b_1"', "1e400"), "json-number-range"],
    [
      "half of a surrogate pair outside of its events",
      withText('"events"', String.raw`"note":"\ud800","events"`),
      "json-lone-surrogate",
    ],
  ])("is refused as JSON with %s", (_title, body, code) => {
    expect(refusalOf(Buffer.from(body as string))).toMatch(new RegExp(`^400 ${code}: `));
  });

  test("may nest 64 levels", () => {
    const deepest = withText('"b_1"', `${"[".repeat(60)}${"]".repeat(60)}`);
    expect(parseWebhookEnvelope(Buffer.from(deepest)).invalid).toHaveLength(1);
  });
});

// The other kinds of unfit text are those of identifierFault().
const unfit: [string, string][] = [
  ["a zero-width space", "a\u200bb"],
  ["a letter and its accent apart", "e\u0301"],
];

describe.each(unfit)("an identifier with %s", (_name, text) => {
  test("is an envelope error as webhook_id", () => {
    const body = bodyOf({ ...envelopeOf(buyerEvent), webhook_id: text });
    expect(refusalOf(body)).toMatch(/^400 envelope-invalid: .*: \/webhook_id must be a string/);
  });

  test("makes its event alone invalid as event_id and type", () => {
    for (const field of ["event_id", "type"] as const) {
      expect(invalidOf(envelopeOf(buyerEvent, { ...buyerEvent, [field]: text }))).toEqual([
        expect.stringMatching(new RegExp(`^data-invalid /events/1/${field} must be a string`)),
      ]);
    }
  });

  test("makes its event alone invalid in data", () => {
    const { data } = buyerEvent;
    const events = [
      [{ ...buyerEvent, data: { ...data, buyer_id: text } }, "buyer_id"],
      [{ ...buyerEvent, type: "seller.status_changed", data: { ...data, seller_id: text } }, "seller_id"],
      [{ ...reminderEvent, data: { ...reminderEvent.data, payment_request_id: text } }, "payment_request_id"],
    ] as const;
    for (const [event, field] of events) {
      const codes = invalidOf(envelopeOf({ ...buyerEvent, event_id: "good" }, event));
      expect(codes).toEqual([
        expect.stringMatching(new RegExp(`^data-invalid /events/1/data/${field} must be`)),
      ]);
      expect(JSON.stringify(codes)).not.toContain(text);
    }
  });
});

function invalidOf(value: unknown): string[] {
  return parse(value).invalid.map(({ code, detail }) => `${code} ${detail}`);
}

function buyerData(change: Readonly<Record<string, unknown>>): object {
  return { ...buyerEvent, data: { ...buyerEvent.data, ...change } };
}

function reminderData(change: Readonly<Record<string, unknown>>): object {
  return { ...reminderEvent, data: { ...reminderEvent.data, ...change } };
}

function withText(part: string, replacement: string): string {
  const text = JSON.stringify(envelopeOf(buyerEvent));
  if (!text.includes(part)) throw new Error(`the body has no ${part}`);
  return text.replace(part, () => replacement);
}
