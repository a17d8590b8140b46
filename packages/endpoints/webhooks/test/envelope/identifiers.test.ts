import { describe, expect, test } from "@jest/globals";
import { isGuardError } from "@countersign/core";
import { parseWebhookEnvelope } from "@countersign/webhooks";
import { bodyOf, buyerEvent, envelopeOf, reminderEvent } from "./envelope-body.ts";

const unfit: [string, string][] = [
  ["a zero-width space", "a\u200bb"],
  ["a zero-width joiner", "a\u200db"],
  ["a byte order mark", "\ufeffab"],
  ["a right-to-left override", "a\u202eb"],
  ["a bidi isolate", "a\u2066b"],
  ["a soft hyphen", "a\u00adb"],
  ["a tag character", "ab\u{e0041}"],
  ["a variation selector", "ab\ufe0f"],
  ["a combining grapheme joiner", "a\u034fb"],
  ["a Hangul filler", "a\u3164"],
  ["a line separator", "a\u2028b"],
  ["a paragraph separator", "a\u2029b"],
  ["a control character", "a\u0085b"],
  ["an unassigned character", "a\u0378b"],
  ["a noncharacter", "a\ufffeb"],
  ["a private-use character", "a\ue000b"],
  ["a letter and its accent apart", "e\u0301"],
  ["an Ångström sign", "\u212b"],
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

test.each([
  ["plain ASCII", "op_1.from-2/to:3 {}~"],
  ["letters of many scripts, in NFC", "käufer-Москва-東京-הנה"],
  ["an assigned emoji", "\u{1f512}"],
])("takes %s", (_name, text) => {
  const { webhook_id, events } = parseWebhookEnvelope(
    bodyOf({
      ...envelopeOf({ ...buyerEvent, event_id: text, data: { ...buyerEvent.data, buyer_id: text } }),
      webhook_id: text,
    }),
  );
  expect([webhook_id, events[0]?.event_id]).toEqual([text, text]);
});
