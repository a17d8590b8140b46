import { quoteForLog } from "@countersign/core";
import { describe, expect, test } from "@jest/globals";

describe("quoteForLog", () => {
  test.each([
    ["plain text", "key-2024", '"key-2024"'],
    ["nothing", "", '""'],
    ["a line break, which would forge a line", "a\r\nb", '"a\\u000d\\u000ab"'],
    ["a terminal escape", "\u001b[2J", '"\\u001b[2J"'],
    ["a tab and NUL", "\t\0", '"\\u0009\\u0000"'],
    ["DEL", "\u007f", '"\\u007f"'],
    ["a quote, which would end the quotation", '"', '"\\""'],
    ["a backslash", "\\n", '"\\\\n"'],
    ["latin-1", "é", '"\\u00e9"'],
    ["a line separator", "\u2028", '"\\u2028"'],
    ["text that reads backwards", "\u202e", '"\\u202e"'],
    ["an emoji, as two units", "😀", '"\\ud83d\\ude00"'],
    ["half of a pair", "\ud83d", '"\\ud83d"'],
  ])("quotes %s", (_name, text, quoted) => {
    expect(quoteForLog(text)).toBe(quoted);
  });

  test("keeps 64 characters and says how many there were", () => {
    expect(quoteForLog("a".repeat(64))).toBe(`"${"a".repeat(64)}"`);
    expect(quoteForLog("a".repeat(65))).toBe(`"${"a".repeat(64)}"... (65 characters)`);
  });

  test("keeps as many characters as asked for", () => {
    expect(quoteForLog("abcdef", 3)).toBe('"abc"... (6 characters)');
  });
});
