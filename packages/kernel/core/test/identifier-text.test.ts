import { identifierFault } from "@countersign/core/internal";
import { describe, expect, test } from "@jest/globals";

describe("identifierFault", () => {
  test.each([
    ["printable ASCII", "op_1.acc-from.acc to~"],
    ["nothing", ""],
    ["letters with accents, composed", "Zahlung-M\u00fcller"],
    ["other scripts", "\u652f\u6255.\u03a9.\u0416"],
    ["an emoji of one code point", "a\u{1f600}b"],
    ["a mark that has no composed form", "x\u0301"],
  ])("has nothing against %s", (_name, text) => {
    expect(identifierFault(text)).toBeUndefined();
  });

  test.each([
    ["NUL", "a\u0000b", "control"],
    ["a line feed", "a\nb", "control"],
    ["DEL", "a\u007fb", "control"],
    ["a C1 control", "a\u0085b", "control"],
    ["a zero-width space", "a\u200bb", "invisible"],
    ["a zero-width joiner", "a\u200db", "invisible"],
    ["a word joiner", "a\u2060b", "invisible"],
    ["a byte order mark", "\ufeffa", "invisible"],
    ["a soft hyphen", "a\u00adb", "invisible"],
    ["a right-to-left override", "a\u202eb", "invisible"],
    ["a bidi isolate", "a\u2066b", "invisible"],
    ["an Arabic letter mark", "a\u061cb", "invisible"],
    ["a tag character", "a\u{e0041}b", "invisible"],
    ["a variation selector", "a\ufe0fb", "invisible"],
    ["a supplementary variation selector", "a\u{e0100}b", "invisible"],
    ["a Mongolian variation selector", "a\u180bb", "invisible"],
    ["a combining grapheme joiner", "a\u034fb", "invisible"],
    ["a Hangul filler", "a\u3164b", "invisible"],
    ["a line separator", "a\u2028b", "invisible"],
    ["a paragraph separator", "a\u2029b", "invisible"],
    ["a no-break space", "a\u00a0b", "invisible"],
    ["an en space", "a\u2002b", "invisible"],
    ["a hair space", "a\u200ab", "invisible"],
    ["a narrow no-break space", "a\u202fb", "invisible"],
    ["an ideographic space", "a\u3000b", "invisible"],
    ["a blank Braille pattern", "a\u2800b", "invisible"],
    ["a lone high surrogate", "a\ud800b", "invisible"],
    ["a lone low surrogate", "a\udc00", "invisible"],
    ["a private-use character", "a\ue000b", "invisible"],
    ["an unassigned character", "a\u0378b", "invisible"],
    ["a noncharacter", "a\uffffb", "invisible"],
    ["a letter and its accent, decomposed", "Mu\u0308ller", "normalization"],
    ["a compatible letter with a canonical twin", "\u212b", "normalization"],
    ["marks in another order", "q\u0307\u0323", "normalization"],
  ])("refuses %s", (_name, text, phrase) => {
    expect(identifierFault(text)).toContain(phrase);
  });
});
