import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { readKey, shownKey } from "../src/operator/key-text.ts";
import { jsonLine } from "../src/output.ts";
import { codePoint } from "@countersign/test-support/runs/code-point.ts";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";

const anyKey = fc.oneof(
  fc.string({ unit: codePoint, minLength: 1, maxLength: 40 }),
  fc.string({ unit: "binary-ascii", minLength: 1, maxLength: 40 }),
  fc.string({ unit: fc.constantFrom('"', "'", "\\", "u", "0", " ", "-", "\0", "\ud800", "a"), minLength: 1 }),
);

/** The key that an operator gives by what is printed. */
function given(printed: string): string {
  return printed.startsWith('"') ? readKey(undefined, { keyJson: printed }) : readKey(printed, {});
}

describe("shownKey", () => {
  test("is printable ASCII that leads back to the key", () => {
    fc.assert(
      fc.property(anyKey, (key) => {
        const printed = shownKey(key);
        expect(printed).toMatch(/^[ -~]+$/);
        expect(given(printed)).toBe(key);
      }),
      fuzzRuns(1000),
    );
  });

  test("stands between the single quotes of a shell, is no flag, and shows every blank", () => {
    fc.assert(
      fc.property(anyKey, (key) => {
        const printed = shownKey(key);
        expect(printed).not.toContain("'");
        expect(printed).not.toMatch(/^-|^ | $/);
        if (!printed.startsWith('"')) expect(printed).not.toContain("  ");
      }),
      fuzzRuns(1000),
    );
  });

  test.each([
    ["payout-7.acc-1.acc-2", "payout-7.acc-1.acc-2"],
    ["two words", "two words"],
    ['a"b$c`d', 'a"b$c`d'],
    ['"a"', '"\\"a\\""'],
    ["it's", '"it\\u0027s"'],
    ["a\0b", '"a\\u0000b"'],
    ["é", '"\\u00e9"'],
    ["e\u0301", '"e\\u0301"'],
    ["💸", '"\\ud83d\\udcb8"'],
    ["a  b", '"a  b"'],
    ["--yes", '"--yes"'],
    ["a\\b", '"a\\\\b"'],
  ])("prints %j as %s", (key, printed) => {
    expect(shownKey(key)).toBe(printed);
  });
});

describe("jsonLine", () => {
  test("is one line of ASCII that parses to the value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), anyKey, (value, key) => {
        const line = jsonLine({ value, key });
        expect(line).toMatch(/^[ -~]+\n$/);
        expect(JSON.parse(line)).toEqual(JSON.parse(JSON.stringify({ value, key })));
      }),
    );
  });
});
