import { expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { decodeText, encodeText } from "@countersign/idempotency/store";
import { codePoint } from "@countersign/test-support/runs/code-point.ts";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";

const text = fc.oneof(
  fc.string({ unit: codePoint }),
  fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
  fc.string({ unit: fc.constantFrom("\\", '"', "u", "0", "d", "8", "\0", "\ud800", "\udc00", "n") }),
);

test("encodeText() is undone by decodeText(), so that no two texts are stored alike", () => {
  fc.assert(
    fc.property(text, (original) => {
      expect(decodeText(encodeText(original))).toBe(original);
    }),
    fuzzRuns(2000),
  );
});

test("encodeText() gives text that UTF-8 and C strings can hold", () => {
  fc.assert(
    fc.property(text, (original) => {
      const stored = encodeText(original);
      expect(stored).not.toContain("\0");
      expect(Buffer.from(stored, "utf8").toString("utf8")).toBe(stored);
    }),
    fuzzRuns(2000),
  );
});

test.each(["payout-7.acc-1.acc-2", "ümlaut \u{1f4b8}", 'with "quotes"', "'; DROP TABLE x; --"])(
  "encodeText() leaves %s readable for operators",
  (plain) => {
    expect(encodeText(plain)).toBe(plain);
  },
);
