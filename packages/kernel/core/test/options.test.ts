import { OptionError } from "@countersign/core";
import {
  assertFunction,
  assertKnownOptions,
  holderOf,
  option,
  optionError,
  readOptions,
  refuseInProduction,
  type Given,
  type OptionTable,
} from "@countersign/core/internal";
import { afterEach, describe, expect, jest, test } from "@jest/globals";

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
      new TypeError("example: unknown option alow; did you mean allow? known options are allow, status"),
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

describe("option.clock", () => {
  const readClock = (now: unknown): (() => number) =>
    option.clock(() => 1, "one").read(now, "exampleStore", "now");

  test("gives the clock's time, or that of the process", () => {
    expect(readClock(() => 7.5)()).toBe(7.5);
    expect(readClock(undefined)()).toBe(1);
  });

  test("refuses what is no function", () => {
    expect(() => readClock(7)).toThrow(/^exampleStore: option now .* a function/);
  });

  test.each([Number.NaN, Infinity, "7", null, undefined, 7n, new Date(7)])("refuses the time %p", (time) => {
    const now = readClock(() => time);
    expect(now).toThrow(/^exampleStore: option now /);
  });
});

describe("option.integer", () => {
  const bounds = { min: 1, max: 10 };

  test.each([1, 5, 10])("returns %i", (value) => {
    expect(option.integer(bounds).read(value, "example", "limit")).toBe(value);
  });

  test("returns the fallback for undefined only", () => {
    expect(option.integer({ ...bounds, fallback: 7 }).read(undefined, "example", "limit")).toBe(7);
    expect(() => option.integer({ ...bounds, fallback: 7 }).read(null, "example", "limit")).toThrow(
      "got null",
    );
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
    const read = (): unknown => option.integer(bounds).read(value, "example", "limit");
    expect(read).toThrow(TypeError);
    expect(read).toThrow("example: option limit must be an integer from 1 to 10");
  });
});

describe("option.boolean", () => {
  test("returns the value, or the fallback for undefined", () => {
    expect(
      [false, true, undefined].map((value) => option.boolean(true).read(value, "example", "on")),
    ).toEqual([false, true, true]);
  });

  test.each([["true"], [1], [null]])("throws on %p", (value) => {
    expect(() => option.boolean(false).read(value, "example", "on")).toThrow(
      "option on must be true or false",
    );
  });
});

describe("option.oneOf", () => {
  const recovery = option.oneOf(["hold", "rerun"], "hold");

  test("returns a value of the list, or the fallback for undefined", () => {
    expect(recovery.read("rerun", "example", "recovery")).toBe("rerun");
    expect(recovery.read(undefined, "example", "recovery")).toBe("hold");
    expect(recovery.byDefault).toBe('"hold"');
  });

  test.each([["Hold"], [null], [["hold"]], ["toString"]])("throws on %p", (value) => {
    const message = 'example: option recovery must be "hold" or "rerun", got ';
    expect(() => recovery.read(value, "example", "recovery")).toThrow(message);
  });
});

describe("readOptions", () => {
  interface ExampleOptions {
    readonly waitMs?: number;
    readonly key: () => string;
    readonly lengths?: { readonly name?: number };
  }
  interface ReadExample extends Given<Omit<ExampleOptions, "lengths">> {
    readonly lengths: { readonly name: number };
  }
  const table: OptionTable<ExampleOptions, ReadExample> = {
    waitMs: option.integer({ min: 0, max: 10, fallback: 2 }),
    key: option.call<() => string>(),
    lengths: option.group({ name: option.integer({ min: 1, max: 9, fallback: 5 }) }, "5"),
  };
  const key = (): string => "k";

  test("reads each option by its rule, defaults filled in", () => {
    expect(readOptions("example", table, { key })).toEqual({ waitMs: 2, key, lengths: { name: 5 } });
    expect(readOptions("example", table, { key, waitMs: 0, lengths: { name: 9 } })).toEqual({
      waitMs: 0,
      key,
      lengths: { name: 9 },
    });
  });

  test.each<[options: unknown, option: string | undefined, message: string]>([
    [{ key, waitMs: 11 }, "waitMs", "example: option waitMs must be an integer from 0 to 10, got 11"],
    [{}, "key", "example: option key must be a function, got undefined"],
    [
      { key, wait: 1 },
      "wait",
      "example: unknown option wait; did you mean waitMs? known options are waitMs, key, lengths",
    ],
    [7, undefined, "example: options must be an object, got 7"],
    [{ key, lengths: 7 }, "lengths", "example: option lengths must be an object, got 7"],
    [
      { key, lengths: { name: 0 } },
      "lengths.name",
      "example: option lengths.name must be an integer from 1 to 9, got 0",
    ],
    [
      { key, lengths: { nome: 1 } },
      "lengths.nome",
      "example: unknown option lengths.nome; did you mean name? known options are name",
    ],
  ])("%j is refused with factory and option", (options, name, message) => {
    const thrown = thrownBy(() => readOptions("example", table, options));
    expect(thrown).toMatchObject({ name: "TypeError", factory: "example", option: name, message });
  });

  test("names an option below the one that holds it, however deep", () => {
    const owner = holderOf(holderOf("payoutEndpoint", "signature"), "tag");
    expect(thrownBy(() => readOptions(owner, table, { key, waitMs: -1 }))).toMatchObject({
      factory: "payoutEndpoint",
      option: "signature.tag.waitMs",
    });
  });

  function thrownBy(call: () => unknown): unknown {
    try {
      call();
    } catch (error) {
      expect(error).toBeInstanceOf(OptionError);
      return error;
    }
    throw new Error("did not throw");
  }
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

  test.each([
    ["once in production, when allowed", "production", ["memory-store"]],
    ["not in development", "development", []],
  ])("warns by the first use: %s", (_name, environment, codes) => {
    process.env["NODE_ENV"] = environment;
    const emitWarning = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const use = refuseInProduction("memoryExampleStore", true);
    expect(emitWarning).not.toHaveBeenCalled();
    use();
    use();
    expect(emitWarning.mock.calls.map(([, options]) => Object(options).code)).toEqual(codes);
    emitWarning.mockRestore();
  });
});

describe("an unknown option", () => {
  const known = ["findBusiness", "lookupTimeoutMs", "stores"];

  test.each([
    ["findBuisness", "did you mean findBusiness? "],
    ["find_business", "did you mean findBusiness? "],
    ["findbusiness", "did you mean findBusiness? "],
    ["store", "did you mean stores? "],
    ["lookupTimeout", "did you mean lookupTimeoutMs? "],
    ["retention", ""],
    ["constructor", ""],
  ])("is compared with the known ones: %s", (name, question) => {
    const expected = `example: unknown option ${name}; ${question}known options are ${known.join(", ")}`;
    expect(() => assertKnownOptions("example", { [name]: 1 }, known)).toThrow(new TypeError(expected));
  });
});
