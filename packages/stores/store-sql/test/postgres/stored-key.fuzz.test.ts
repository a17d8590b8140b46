import { expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { codePoint } from "@countersign/test-support/runs/code-point.ts";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";
import { decodeKey, encodeKey } from "../../dist/postgres/stored-key.js";

const units = (min: number, max: number, minLength: number) =>
  fc
    .array(fc.integer({ min, max }), { minLength, maxLength: 512 })
    .map((codes) => String.fromCharCode(...codes));

const keys = fc.oneof(
  fc.string({ unit: codePoint, minLength: 1, maxLength: 256 }),
  units(0, 0xffff, 1),
  units(0xd800, 0xdfff, 500),
);

test("any key is found again as it was, in text that the server and its index take", () => {
  const property = fc.property(keys, (key) => {
    const stored = encodeKey(key);
    expect(decodeKey(stored)).toBe(key);
    expect(stored).not.toContain("\0");
    expect(Buffer.from(stored, "utf8").toString("utf8")).toBe(stored);
    // An index entry has at most 2,704 bytes.
    expect(Buffer.byteLength(stored)).toBeLessThan(2_704);
  });
  fc.assert(property, fuzzRuns(500));
});
