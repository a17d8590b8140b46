import {
  assertFunction,
  assertKnownOptions,
  booleanOption,
  clockOption,
  integerOption,
  optionError,
  refuseInProduction,
} from "@countersign/guard";
import { afterEach, describe, expect, test } from "@jest/globals";

describe("optionError", () => {
  test.each([
    ["a number", 5, "5"],
    ["NaN", Number.NaN, "NaN"],
    ["a boolean", true, "true"],
    ["undefined", undefined, "undefined"],
    ["null", null, "null"],
    ["the empty string", "", "an empty string"],
    ["text, which can be a secret", "s3cret", "a string of 6 characters"],
    ["an empty array", [], "an empty array"],
    ["an array", ["s3cret"], "an array of 1"],
    ["an object", { secret: "s3cret" }, "an object"],
    ["a promise", Promise.resolve("s3cret"), "a promise"],
    ["a function", () => "s3cret", "a function"],
    ["a bigint", 5n, "a bigint"],
    ["a symbol", Symbol("s3cret"), "a symbol"],
  ])("describes %s without its content", (_name, got, description) => {
    const error = optionError("example", "limit", "an integer", got);
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toBe(`example: option limit must be an integer, got ${description}`);
  });
});

describe("assertKnownOptions", () => {
  test("accepts known options in any number", () => {
    expect(() => assertKnownOptions("example", {}, ["a", "b"])).not.toThrow();
    expect(() => assertKnownOptions("example", { b: 1, a: undefined }, ["a", "b"])).not.toThrow();
  });

  test.each([
    ["undefined", undefined],
    ["null", null],
    ["text", "a"],
    ["an array", ["a"]],
    ["a function", () => undefined],
    ["a promise, which has no options of its own", Promise.resolve({ a: 1 })],
  ])("throws on %s", (_name, options) => {
    expect(() => assertKnownOptions("example", options, ["a"])).toThrow(
      "example: options must be an object, got ",
    );
  });

  test("names a misspelt option and the known ones", () => {
    expect(() => assertKnownOptions("example", { alow: [] }, ["allow", "status"])).toThrow(
      new TypeError("example: unknown option alow; known options are allow, status"),
    );
  });

  test("does not take an inherited name for a known one", () => {
    expect(() => assertKnownOptions("example", { toString: 1 }, ["a"])).toThrow("unknown option toString");
  });
});

describe("assertFunction", () => {
  test("accepts functions only", () => {
    expect(() => assertFunction("example", "clock", () => 0)).not.toThrow();
    expect(() => assertFunction("example", "clock", "Date.now")).toThrow("option clock must be a function");
  });
});

describe("clockOption", () => {
  test("gives the clock's time, or that of the process", () => {
    expect(clockOption("exampleStore", () => 7.5)()).toBe(7.5);
    const before = performance.now();
    expect(clockOption("exampleStore", undefined)()).toBeGreaterThanOrEqual(before);
  });

  test("refuses what is no function", () => {
    expect(() => clockOption("exampleStore", 7 as never)).toThrow(/^exampleStore: option now .* a function/);
  });

  test.each([Number.NaN, Infinity, "7", null, undefined, 7n, new Date(7)])("refuses the time %p", (time) => {
    const now = clockOption("exampleStore", () => time as never);
    expect(now).toThrow(/^exampleStore: option now /);
  });
});

describe("integerOption", () => {
  const bounds = { min: 1, max: 10 };

  test.each([1, 5, 10])("returns %i", (value) => {
    expect(integerOption("example", "limit", value, bounds)).toBe(value);
  });

  test("returns the fallback for undefined only", () => {
    expect(integerOption("example", "limit", undefined, { ...bounds, fallback: 7 })).toBe(7);
    expect(() => integerOption("example", "limit", null, { ...bounds, fallback: 7 })).toThrow("got null");
  });

  test.each([
    ["undefined without a fallback", undefined],
    ["one below", 0],
    ["one above", 11],
    ["a fraction", 1.5],
    ["NaN", Number.NaN],
    ["infinity", Infinity],
    ["numeric text", "5"],
    ["a bigint", 5n],
  ])("throws on %s", (_name, value) => {
    const read = (): unknown => integerOption("example", "limit", value, bounds);
    expect(read).toThrow(TypeError);
    expect(read).toThrow("example: option limit must be an integer from 1 to 10");
  });
});

describe("booleanOption", () => {
  test("returns the value, or the fallback for undefined", () => {
    expect([false, true, undefined].map((value) => booleanOption("example", "on", value, true))).toEqual([
      false,
      true,
      true,
    ]);
  });

  test.each([["true"], [1], [null]])("throws on %p", (value) => {
    expect(() => booleanOption("example", "on", value, false)).toThrow("option on must be true or false");
  });
});

describe("refuseInProduction", () => {
  const before = process.env["NODE_ENV"];

  afterEach(() => {
    process.env["NODE_ENV"] = before;
  });

  test("throws in production and names the remedy", () => {
    process.env["NODE_ENV"] = "production";
    expect(() => refuseInProduction("memoryExampleStore", false)).toThrow(TypeError);
    expect(() => refuseInProduction("memoryExampleStore", false)).toThrow(
      /^memoryExampleStore: .*allowInProduction/,
    );
  });

  test.each([
    ["production, when allowed", "production", true],
    ["development", "development", false],
    ["test", "test", false],
  ])("accepts %s", (_name, environment, allowed) => {
    process.env["NODE_ENV"] = environment;
    expect(() => refuseInProduction("memoryExampleStore", allowed)).not.toThrow();
  });
});
