import { describe, expect, test } from "@jest/globals";
import { parseRetryAfter } from "../src/retry-after.ts";

const now = Date.UTC(1994, 10, 6, 8, 49, 27);

describe("parseRetryAfter", () => {
  test.each<[string | null, number | undefined]>([
    [null, undefined],
    ["0", 0],
    ["120", 120],
    ["999999999", 999_999_999],
    ["Sun, 06 Nov 1994 08:49:37 GMT", 10],
    ["Sunday, 06-Nov-94 08:49:37 GMT", 10],
    ["Sun Nov  6 08:49:37 1994", 10],
    ["Sun, 06 Nov 1994 08:49:26 GMT", 0],
    ["1000000000", undefined],
    ["-1", undefined],
    ["+1", undefined],
    ["1.5", undefined],
    ["1, 2", undefined],
    ["", undefined],
    ["06 Nov 1994", undefined],
    ["1994-11-06T08:49:37Z", undefined],
    ["Sun, 06 Nov 1994 08:49:37 +0100", undefined],
    ["Sun, 99 Nov 1994 08:49:37 GMT", undefined],
    ["Xyz, 06 Xyz 1994 08:49:37 GMT", undefined],
  ])("reads %p", (value, seconds) => {
    expect(parseRetryAfter(value, now)).toBe(seconds);
  });

  test("rounds a part of a second up", () => {
    expect(parseRetryAfter("Sun, 06 Nov 1994 08:49:37 GMT", now + 1)).toBe(10);
  });
});
