import { describe, expect, test } from "@jest/globals";
import { parseRequestTarget } from "../src/components.ts";
import { collectFieldLines, combinedFieldValue } from "../src/message.ts";
import { verdictOf } from "./hand-signer.ts";

describe("collectFieldLines", () => {
  test("keeps every occurrence in order, under the lower-case name", () => {
    const lines = collectFieldLines(["A", "1", "b", "2", "a", "3", "A", ""]);
    expect([...lines]).toEqual([
      ["a", ["1", "3", ""]],
      ["b", ["2"]],
    ]);
  });

  test("is no object with inherited names", () => {
    const lines = collectFieldLines(["__proto__", "1", "Constructor", "2"]);
    expect(lines.get("__proto__")).toEqual(["1"]);
    expect(lines.get("constructor")).toEqual(["2"]);
    expect(collectFieldLines([]).get("constructor")).toBeUndefined();
  });

  test("leaves out a name without value", () => {
    expect(collectFieldLines(["a", "1", "b"]).has("b")).toBe(false);
  });
});

describe("combinedFieldValue", () => {
  test.each<[string, readonly string[] | undefined, string | undefined]>([
    ["no field", undefined, undefined],
    ["no line", [], undefined],
    ["one line", ["a"], "a"],
    ["an empty line", [""], ""],
    ["a line of white space", [" \t "], ""],
    ["white space around a line", ["\t a \t b \t"], "a \t b"],
    ["several lines", [" a", "b ", ""], "a, b, "],
    ["other white space, which stays", ["\u00a0a\r"], "\u00a0a\r"],
  ])("combines %s", (_title, lines, value) => {
    expect(combinedFieldValue(lines)).toBe(value);
  });

  test("takes linear time on spaces inside a value", () => {
    const value = `a${" ".repeat(1_000_000)}b`;
    expect(combinedFieldValue([value, ` ${value}`])).toBe(`${value}, ${value}`);
  });
});

test.each(["//a?b", "/a?b c", "/a/./b", "/\ud83d\ude00"])("parseRequestTarget refuses %j", (target) => {
  expect(verdictOf(() => parseRequestTarget(target))).toBe("target-invalid");
});
