import { describe, expect, test } from "@jest/globals";
import { parseJsonBytes } from "../src/wire-text.ts";
import { codeOf } from "@countersign/test-support/runs/code-of.ts";

const maxDepth = 64;

describe("parseJsonBytes", () => {
  test.each<[string, string, unknown]>([
    ["an object", '{"a":{"b":[1,2]},"c":"x"}', { a: { b: [1, 2] }, c: "x" }],
    ["one key in two objects", '[{"a":1},{"a":1}]', [{ a: 1 }, { a: 1 }]],
    ["the literal null", " null ", null],
    ["a number", "-1.5e2", -150],
    ["a byte order mark before it", '\uFEFF{"a":1}', { a: 1 }],
    [
      "colons, quotes and braces in strings",
      String.raw`{"a\"b:{[":"\\","c":"\\\":{"}`,
      { 'a"b:{[': "\\", c: '\\":{' },
    ],
    ["a pair of escaped surrogates", String.raw`"\ud83c\udfe6"`, "🏦"],
    ["a key named constructor", '{"constructor":"Acme Bau"}', { constructor: "Acme Bau" }],
    ["64 levels", "[".repeat(64) + "]".repeat(64), JSON.parse("[".repeat(64) + "]".repeat(64))],
  ])("parses %s", (_name, text, value) => {
    expect(parseJsonBytes(Buffer.from(text), maxDepth).value).toEqual(value);
  });

  test.each<[string, string, Buffer | string]>([
    ["nothing", "json-empty", ""],
    ["white space alone", "json-invalid", " \n"],
    ["a byte order mark alone", "json-invalid", "\uFEFF"],
    ["two byte order marks", "json-invalid", "\uFEFF\uFEFF{}"],
    ["bytes that are no UTF-8", "json-invalid", Buffer.from([0x22, 0xff, 0x22])],
    ["an overlong encoding", "json-invalid", Buffer.from([0x22, 0xc0, 0xaf, 0x22])],
    ["a surrogate as UTF-8", "json-invalid", Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ["UTF-16", "json-invalid", Buffer.from("{}", "utf16le")],
    ["an unfinished object", "json-invalid", '{"a":1'],
    ["an unfinished string", "json-invalid", '{"a'],
    ["a second value", "json-invalid", "{}{}"],
    ["a trailing comma", "json-invalid", "[1,]"],
    ["a comment", "json-invalid", "{}//x"],
    ["NaN", "json-invalid", "NaN"],
    ["an escaped lone surrogate", "json-invalid", String.raw`{"a":"\ud800"}`],
    ["an escaped lone surrogate in a key", "json-invalid", String.raw`{"\udc00":1}`],
    ["a key twice", "json-duplicate-key", '{"amount":1,"amount":2}'],
    ["a key twice with one value", "json-duplicate-key", '{"a":1,"a":1}'],
    ["a key twice with one text", "json-duplicate-key", '{"a":"x","a":"x"}'],
    ["a key twice, once escaped", "json-duplicate-key", String.raw`{"a":1,"\u0061":1}`],
    ["a key twice deep inside", "json-duplicate-key", '{"x":[{"y":{"a":1,"b":2,"a":1}}]}'],
    ["an empty key twice", "json-duplicate-key", '{"":1,"":2}'],
    ["__proto__", "json-forbidden-key", '{"a":{"__proto__":{"admin":true}}}'],
    ["__proto__ in escapes", "json-forbidden-key", String.raw`{"\u005f_proto__":1}`],
    ["constructor.prototype", "json-forbidden-key", '{"constructor":{"prototype":{"admin":true}}}'],
    ["a number beyond a double", "json-number-range", '{"amount":1e400}'],
    ["65 levels", "json-too-deep", `${'{"a":'.repeat(65)}1${"}".repeat(65)}`],
    ["100,000 levels", "json-too-deep", "[".repeat(100_000)],
  ])("refuses %s as %s", async (_name, code, body) => {
    expect(await codeOf(() => parseJsonBytes(Buffer.from(body as string), maxDepth))).toBe(`400 ${code}`);
  });

  test.each([
    ["backslashes", `"${String.raw`\\`.repeat(50_000)}"`],
    ["escaped quotes", `"${String.raw`\"`.repeat(50_000)}"`],
    ["quotes", '"'.repeat(100_000)],
    ["digits", `0.${"1".repeat(100_000)}`],
  ])("decides on 100 kB of %s in linear time", (_name, text) => {
    const bytes = Buffer.from(text);
    // Of this process, whatever else the machine does.
    const startedAt = process.cpuUsage();
    try {
      parseJsonBytes(bytes, maxDepth);
    } catch (error) {
      expect(error).toMatchObject({ code: "json-invalid" });
    }
    expect(process.cpuUsage(startedAt).user / 1_000).toBeLessThan(200);
  });
});

describe("maxValues", () => {
  test.each([
    ["members", '{"a":1,"b":"x,[{","c":null}', 4],
    ["elements", "[1,[2],[]]", 6],
    ["objects", '[{"a":{}},{}]', 6],
    ["one value", "7", 1],
  ])("counts at least as many as there are %s, outside of strings", async (_name, text, count) => {
    const bytes = Buffer.from(text);
    expect(parseJsonBytes(bytes, maxDepth, count).value).toEqual(JSON.parse(text));
    expect(await codeOf(() => parseJsonBytes(bytes, maxDepth, count - 1))).toBe("413 json-too-many-values");
  });
});
