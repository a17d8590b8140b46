import { describe, expect, test } from "@jest/globals";
import { isGuardError } from "@countersign/core";
import { parseWebhookEnvelope } from "@countersign/webhooks";
import { bodyOf, buyerEvent, envelopeOf, reminderEvent } from "./envelope-body.ts";

// The other kinds of unfit text are those of identifierFault().
const unfit: [string, string][] = [
  ["a zero-width space", "a\u200bb"],
  ["a letter and its accent apart", "e\u0301"],
];

function codeOf(value: unknown): unknown {
  try {
    return parseWebhookEnvelope(bodyOf(value)).invalid.map(({ code, detail }) => `${code} ${detail}`);
  } catch (error) {
    return isGuardError(error) ? `${error.status} ${error.code} ${error.message}` : error;
  }
}

describe.each(unfit)("an identifier with %s", (_name, text) => {
  test("is an envelope error as webhook_id, event_id and type", () => {
    const envelopes = [
      [{ ...envelopeOf(buyerEvent), webhook_id: text }, "/webhook_id"],
      [envelopeOf(buyerEvent, { ...buyerEvent, event_id: text }), "/events/1/event_id"],
      [envelopeOf({ ...buyerEvent, type: text }), "/events/0/type"],
    ] as const;
    for (const [envelope, pointer] of envelopes) {
      expect(codeOf(envelope)).toMatch(new RegExp(`^400 envelope-invalid .*: ${pointer} must be a string`));
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
      const codes = codeOf(envelopeOf({ ...buyerEvent, event_id: "good" }, event));
      expect(codes).toEqual([
        expect.stringMatching(new RegExp(`^data-invalid /events/1/data/${field} must be`)),
      ]);
      expect(JSON.stringify(codes)).not.toContain(text);
    }
  });
});
