import { quoteForLog } from "@countersign/core";
import { expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { codePoint } from "@countersign/test-support/runs/code-point.ts";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";

const text = fc.string({ unit: codePoint, maxLength: 100 });

test("gives one line of printable ASCII of bounded length for any text", () => {
  fc.assert(
    fc.property(text, fc.nat({ max: 80 }), (raw, maxLength) => {
      const quoted = quoteForLog(raw, maxLength);
      expect(quoted).toMatch(/^[\x20-\x7e]*$/);
      expect(quoted.length).toBeLessThanOrEqual(6 * maxLength + 40);
    }),
    fuzzRuns(3000),
  );
});

test("can be read back, so that no two texts look alike in a log", () => {
  fc.assert(
    fc.property(text, (raw) => {
      expect(JSON.parse(quoteForLog(raw, 1000))).toBe(raw);
    }),
    fuzzRuns(3000),
  );
});
