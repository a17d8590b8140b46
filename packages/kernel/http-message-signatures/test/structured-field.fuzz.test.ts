import { describe, expect, test } from "@jest/globals";
import { FieldScanner } from "../src/field-scanner.ts";
import { parseQueryParams } from "../src/components.ts";
import { parseDictionary, parseList } from "../src/structured-field.ts";
import { verdictOf } from "./hand-signer.ts";

/** How often a parser looks at its text: reads of a character count one, those of a part its length. */
function stepsOf(text: string, parse: (text: string) => unknown): number {
  let steps = 0;
  const counted = new Proxy(Object({}) as object, {
    get: (_target, name) => {
      const value: unknown = Reflect.get(Object(text) as object, name);
      steps++;
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        const result: unknown = Reflect.apply(value, text, args);
        // Not what the proxy alone does, and a real text does not.
        if (typeof result === "string" && name !== "toString") steps += result.length;
        if (name === "indexOf")
          steps += (result === -1 ? text.length : Number(result)) - Number(args[1] ?? 0);
        return result;
      };
    },
  });
  verdictOf(() => parse(counted as unknown as string));
  return steps;
}

describe("the steps of a parser grow with the length of the field, no faster", () => {
  const parsers: [string, (text: string) => unknown][] = [
    ["parseList", (text) => parseList(text, "x")],
    ["parseDictionary", (text) => parseDictionary(text, "x")],
    ["a scanner without a limit of members", (text) => scanAll(text)],
  ];
  const families: [string, (count: number) => string][] = [
    ["members", (count) => Array.from({ length: count }, (_, index) => `k${1000 + index}`).join(",")],
    ["spaces", (count) => `a=${" ".repeat(count)}1`],
    ["tabs behind a member", (count) => `a${"\t".repeat(count)},b`],
    ["open brackets", (count) => `a=${"(".repeat(count)}`],
    ["an inner list", (count) => `a=(${"1 ".repeat(count)})`],
    ["spaces in an inner list", (count) => `a=(${" ".repeat(count)})`],
    ["parameters", (count) => `a=1${";b".repeat(count)}`],
    ["spaces before a parameter", (count) => `a=1;${" ".repeat(count)}b`],
    ["a string", (count) => `a="${"x".repeat(count)}"`],
    ["escapes", (count) => `a="${"\\\\".repeat(count)}"`],
    ["a string without end", (count) => `a="${"x".repeat(count)}`],
    ["bytes", (count) => `a=:${"AAAA".repeat(count)}:`],
    ["bytes without end", (count) => `a=:${"AAAA".repeat(count)}`],
    ["colons", (count) => `a=${"::,b=".repeat(count)}`],
    ["a token", (count) => `a=${"x".repeat(count)}`],
    ["a key", (count) => "k".repeat(count)],
    ["commas", (count) => ",".repeat(count)],
  ];

  test.each(
    parsers.flatMap(([parser, parse]) =>
      families.map(([family, make]) => [parser, family, parse, make] as const),
    ),
  )("%s on %s", (_parser, _family, parse, make) => {
    const few = stepsOf(make(100), parse);
    const many = stepsOf(make(800), parse);
    expect(few).toBeGreaterThan(0);
    expect(many).toBeLessThanOrEqual(8 * few + 100);
  });
});

test("a query of a million parameters is read in one pass", () => {
  const query = `?${Array.from({ length: 200_000 }, (_, index) => `p${index}=%41`).join("&")}`;
  expect(parseQueryParams(query).get("p199999")).toBe("A");
  const long = parseQueryParams(`?a=${"%20".repeat(300_000)}&${"&".repeat(300_000)}`);
  expect(long.get("a")).toHaveLength(900_000);
});

function scanAll(text: string): unknown {
  const scanner = new FieldScanner(text, "x", Infinity);
  const readMember = (): unknown =>
    scanner.atInnerList()
      ? scanner.readInnerList(Infinity, () => scanner.readBareItem())
      : scanner.readBareItem();
  return scanner.readDictionary(readMember, () => scanner.readParameters());
}
