import { describe, expect, test } from "@jest/globals";
import { limitRule } from "@countersign/core/internal";
import { rawBody } from "@countersign/raw-body";

describe("the limit of a body", () => {
  const limitOf = (limit: unknown): number => limitRule().read(limit, "rawBody", "limit");

  test.each<[string, number | string | undefined, number]>([
    ["nothing", undefined, 102_400],
    ["one byte", 1, 1],
    ["an integer", 5000, 5000],
    ["digits alone", "5000", 5000],
    ["bytes", "7b", 7],
    ["kilobytes", "100kb", 102_400],
    ["megabytes", "1mb", 1_048_576],
    ["upper case", "2KB", 2048],
    ["the largest", "1gb", 1_073_741_824],
  ])("takes %s", (_name, limit, limitBytes) => {
    expect(limitOf(limit)).toBe(limitBytes);
  });

  test.each<[string, unknown]>([
    ["zero", 0],
    ["zero as text", "0"],
    ["NaN", Number.NaN],
    ["a negative number", -1],
    ["a fraction", 1.5],
    ["infinity", Number.POSITIVE_INFINITY],
    ["more than a gigabyte", "2gb"],
    ["more than a gigabyte in bytes", 1_073_741_825],
    ["a word", "unlimited"],
    ["an unknown unit", "1tb"],
    ["an empty string", ""],
    ["a fraction as text", "1.5mb"],
    ["a negative number as text", "-1kb"],
    ["white space", " 1kb"],
    ["an exponent", "1e3"],
    ["null", null],
    ["a boolean", true],
  ])("throws on %s", (_name, limit) => {
    expect(() => limitOf(limit)).toThrow(/^rawBody: option limit must be an integer/);
  });
});

describe("rawBody", () => {
  test("throws when it is built with a bad limit", () => {
    expect(() => rawBody({ limit: "many" })).toThrow(TypeError);
  });

  test("throws when it is built with an unknown option", () => {
    expect(() => rawBody({ limits: 1 } as object)).toThrow(/unknown option limits/);
  });

  test("returns a middleware that stack traces name", () => {
    expect(rawBody().name).toBe("rawBodyMiddleware");
  });
});
