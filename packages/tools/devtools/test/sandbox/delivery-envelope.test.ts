import { describe, expect, test } from "@jest/globals";
import { createEnvelope } from "../../src/sandbox/index.ts";
import { formatTimestamp } from "../../src/internal.ts";
import { createNanosecondClock, type ServiceEvent } from "../../src/sandbox/delivery/envelope.ts";
import { compareTimestamps, parseTimestamp, parseWebhookEnvelope } from "countersign/webhooks";
import * as fc from "fast-check";

const now = 1_704_164_645_123_456_789n;
const nanosecondsOfYear9999 = 253_402_300_799_999_999_999n;

describe("formatTimestamp", () => {
  test.each<[string, bigint, string]>([
    ["nanoseconds", now, "2024-01-02T03:04:05.123456789Z"],
    ["zeros kept at both ends", 1_000_000_100n, "1970-01-01T00:00:01.000000100Z"],
    ["the last of four digits", nanosecondsOfYear9999, "9999-12-31T23:59:59.999999999Z"],
  ])("writes %s", (_name, nanoseconds, text) => {
    expect(formatTimestamp(nanoseconds)).toBe(text);
  });

  test("refuses a year of five digits", () => {
    expect(() => formatTimestamp(nanosecondsOfYear9999 + 1n)).toThrow(RangeError);
  });

  test("writes what the receiver reads, in the same order", () => {
    const nanoseconds = fc.bigInt({ min: 0n, max: nanosecondsOfYear9999 });
    fc.assert(
      fc.property(nanoseconds, nanoseconds, (a, b) => {
        const [first, second] = [parseTimestamp(formatTimestamp(a)), parseTimestamp(formatTimestamp(b))];
        expect(first.epochNanoseconds).toBe(a);
        expect(compareTimestamps(first, second)).toBe(a < b ? -1 : a > b ? 1 : 0);
      }),
      { numRuns: 300 },
    );
  });
});

describe("createNanosecondClock", () => {
  test("grows within a millisecond and when the clock goes back", () => {
    let nowMs = 1_700_000_000_000;
    const clock = createNanosecondClock(() => nowMs);
    const times = [clock(), clock(), clock()];
    nowMs -= 60_000;
    times.push(clock(), clock());
    expect(times.every((time, index) => time > (times[index - 1] ?? 0n))).toBe(true);
    expect(times[0] ?? 0n).toBeGreaterThanOrEqual(1_700_000_000_000_000_000n);
  });
});

describe("createEnvelope", () => {
  test("writes the fields of the spec, and times that are not given as now", () => {
    const events = [
      { event_id: "e1", type: "a.b", data: { n: 1, deep: { ok: true } }, epochNanoseconds: 5n },
      { event_id: "e2", type: "c", data: {} },
    ];
    expect(createEnvelope({ webhookId: "w1", events, now }).toString()).toBe(
      '{"webhook_id":"w1","timestamp":"2024-01-02T03:04:05.123456789Z","events":[' +
        '{"event_id":"e1","timestamp":"1970-01-01T00:00:00.000000005Z","type":"a.b","data":{"n":1,"deep":{"ok":true}}},' +
        '{"event_id":"e2","timestamp":"2024-01-02T03:04:05.123456789Z","type":"c","data":{}}]}',
    );
  });

  test("is read by the receiver, and makes up identifiers", () => {
    const data = { buyer_id: 'b"\\é😀', old_status: "PENDING", new_status: "ACTIVE" };
    const event: ServiceEvent = { type: "buyer.status_changed", data };
    const first = parseWebhookEnvelope(createEnvelope({ events: [event, event], now }));
    const second = parseWebhookEnvelope(createEnvelope({ events: [], now }));
    expect(first.events.map((read) => read.data)).toEqual([data, data]);
    expect(first.events[0]?.event_id).not.toBe(first.events[1]?.event_id);
    expect(first.webhook_id).not.toBe(second.webhook_id);
    expect(second.events).toEqual([]);
  });

  test.each<[string, Partial<Record<keyof ServiceEvent, unknown>>, RegExp]>([
    ["an event_id of 257 characters", { event_id: "x".repeat(257) }, /event_id must be/],
    ["an event_id with a NUL", { event_id: "a\u0000b" }, /event_id must be/],
    ["an event_id with a lone surrogate", { event_id: "a\uD800" }, /event_id must be/],
    ["no type", { type: undefined }, /type of an event/],
    ["a type with a line break", { type: "a\nb" }, /type of an event/],
    ["a list as data", { data: [] }, /data of an event/],
  ])("refuses %s", (_name, changes, message) => {
    const event = { event_id: "e", type: "t", data: {}, ...changes } as ServiceEvent;
    expect(() => createEnvelope({ events: [event], now })).toThrow(message);
    expect(() => createEnvelope({ events: [event], now })).toThrow(TypeError);
  });
});
