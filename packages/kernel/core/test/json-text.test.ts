import { describe, expect, test } from "@jest/globals";
import { parseJsonBytes } from "../src/wire-text.ts";
import { codeOf } from "@countersign/test-support/runs/code-of.ts";

const maxDepth = 64;

describe("parseJsonBytes", () => {
  test.each<[string, string, Buffer | string]>([
    ["bytes that are no UTF-8", "json-invalid", Buffer.from([0x22, 0xff, 0x22])],
    ["an overlong encoding", "json-invalid", Buffer.from([0x22, 0xc0, 0xaf, 0x22])],
    ["a surrogate as UTF-8", "json-invalid", Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ["UTF-16", "json-invalid", Buffer.from("{}", "utf16le")],
    ["half of a surrogate pair in a text", "json-lone-surrogate", String.raw`["\ud83d"]`],
    ["half of a surrogate pair in a name", "json-lone-surrogate", String.raw`{"a":{"\ude00":1}}`],
    ["the halves of a pair in the wrong order", "json-lone-surrogate", String.raw`"\ude00\ud83d"`],
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
