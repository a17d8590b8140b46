import { isGuardError } from "@countersign/core";
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { parseWebhookEnvelope, type WebhookEnvelope } from "@countersign/webhooks";
import { bodyOf, buyerEvent, envelopeOf, reminderEvent } from "./envelope-body.ts";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";

const codes = /^(?:json-[a-z-]+|envelope-invalid)$/;

/** The envelope, or undefined when it was refused as it should be; any other error fails the property. */
function attempt(bytes: Uint8Array): WebhookEnvelope | undefined {
  try {
    return parseWebhookEnvelope(bytes);
  } catch (error) {
    if (isGuardError(error) && error.status === 400 && codes.test(error.code)) return undefined;
    throw error;
  }
}

const jsonValue = fc.jsonValue({ maxDepth: 3 });
const validBody = bodyOf(envelopeOf(buyerEvent, reminderEvent, { ...buyerEvent, type: "ping" }));

describe("parseWebhookEnvelope", () => {
  test("gives an envelope or a GuardError 400 for any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        attempt(bytes);
      }),
    );
  });

  test("gives an envelope or a GuardError 400 for a valid body with changed bytes", () => {
    const changes = fc.array(fc.tuple(fc.nat(validBody.length - 1), fc.nat(255)), {
      minLength: 1,
      maxLength: 3,
    });
    fc.assert(
      fc.property(changes, (list) => {
        const bytes = Buffer.from(validBody);
        for (const [index, byte] of list) bytes[index] = byte;
        const envelope = attempt(bytes);
        if (envelope !== undefined) expect(envelope.events.length + envelope.invalid.length).toBe(3);
      }),
      fuzzRuns(2000),
    );
  });

  test("puts every event of a known or unknown type with any time and data into one of the two lists", () => {
    const event = fc.record({
      event_id: fc.string({ minLength: 1, unit: fc.constantFrom("a", "ä", "-") }),
      type: fc.constantFrom(buyerEvent.type, reminderEvent.type, "seller.status_changed", "ping"),
      timestamp: fc.oneof(fc.constant(buyerEvent.timestamp), jsonValue),
      data: fc.oneof(fc.constantFrom<unknown>(buyerEvent.data, reminderEvent.data), jsonValue),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 6 }), (list) => {
        const envelope = attempt(bodyOf(envelopeOf(...list)));
        // A value with the key "__proto__", for example, is refused as JSON.
        fc.pre(envelope !== undefined);
        const badPositions = new Set(envelope.invalid.map(({ index }) => index));
        const identity = ({ event_id, type }: { event_id: string; type: string }): unknown => ({
          event_id,
          type,
        });
        const good = list.filter((_event, index) => !badPositions.has(index));
        expect(envelope.events.map(identity)).toEqual(good.map(identity));
        expect(envelope.invalid.map(({ raw }) => raw)).toEqual(
          list
            .filter((_event, index) => badPositions.has(index))
            .map((bad) => JSON.parse(JSON.stringify(bad))),
        );
      }),
      fuzzRuns(500),
    );
  });

  test("keeps further fields of any name and value", () => {
    const name = fc.string({ minLength: 1 }).filter((text) => !ownNames.has(text));
    const further = fc.dictionary(name, jsonValue, { maxKeys: 4, noNullPrototype: true });
    fc.assert(
      fc.property(further, further, further, (ofEnvelope, ofEvent, ofData) => {
        const event = { ...ofEvent, ...buyerEvent, data: { ...ofData, ...buyerEvent.data } };
        const body = { ...ofEnvelope, ...envelopeOf(event) };
        const envelope = attempt(bodyOf(body));
        fc.pre(envelope !== undefined);
        const { invalid, ...kept } = envelope;
        expect(invalid).toEqual([]);
        expect(JSON.parse(JSON.stringify(kept))).toEqual(JSON.parse(JSON.stringify(body)));
      }),
      fuzzRuns(500),
    );
  });

  test("gives days_from_due_date as the integer that was written, as a number or as text", () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), fc.boolean(), (days, asText) => {
        const data = { ...reminderEvent.data, days_from_due_date: asText ? String(days) : days };
        const [event] = parseWebhookEnvelope(bodyOf(envelopeOf({ ...reminderEvent, data }))).events;
        expect(event?.data).toEqual({ ...data, days_from_due_date: days === 0 ? 0 : days });
      }),
    );
  });
});

const ownNames = new Set([
  "webhook_id",
  "timestamp",
  "events",
  "event_id",
  "type",
  "data",
  "invalid",
  "toJSON",
]);
