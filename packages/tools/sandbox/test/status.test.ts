import { describe, expect, test } from "@jest/globals";
import { explainStatus, matchesStatus } from "../src/protocol/index.ts";
import { parseStatusPatterns } from "../src/status.ts";

describe("parseStatusPatterns", () => {
  test.each([
    ["200", ["200"]],
    ["200, 409", ["200", "409"]],
    ["2xx,503", ["2xx", "503"]],
  ])("reads %s", (text, patterns) => {
    expect(parseStatusPatterns(text)).toEqual(patterns);
  });

  test.each(["", "ok", "200,", "600", "20", "2x", "2000"])("refuses %p", (text) => {
    expect(parseStatusPatterns(text)).toBeUndefined();
  });
});

describe("matchesStatus", () => {
  test.each([
    [200, ["200"], true],
    [204, ["2xx"], true],
    [401, ["2xx"], false],
    [409, ["200", "409"], true],
    [404, ["401"], false],
    [200, [], false],
  ])("%d against %p is %p", (status, patterns, expected) => {
    expect(matchesStatus(status, patterns)).toBe(expected);
  });
});

describe("explainStatus", () => {
  test.each([
    [200, "acknowledged"],
    [202, "acknowledged"],
    [302, "redirect"],
    [400, "validation error"],
    [401, "refused"],
    [404, "no payout endpoint"],
    [409, "already processed"],
    [413, "larger"],
    [415, "media type"],
    [418, "no status that the payout interface knows"],
    [500, "retry with the same idempotency_key"],
    [503, "in doubt"],
  ])("%d", (status, meaning) => {
    expect(explainStatus(status)).toContain(meaning);
  });
});
