import { masking } from "../../dist/loopback/index.js";
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { codePoint } from "@countersign/test-support/runs/code-point.ts";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";
import { encodings, readings } from "./encodings.ts";

const secretText = fc.oneof(
  fc.string({ minLength: 4, maxLength: 24 }),
  fc.string({ unit: codePoint, minLength: 4, maxLength: 24 }),
  fc.string({ unit: "grapheme", minLength: 4, maxLength: 24 }),
  fc.string({
    unit: fc.constantFrom("a", "b", "%", "+", "\\", "/", "=", "4", "1", '"', " "),
    minLength: 4,
    maxLength: 16,
  }),
);
const anyText = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.string({
    unit: fc.constantFrom("a", "B", "4", "=", "\\", "%", " ", "\n", '"', "+", "u"),
    maxLength: 12,
  }),
);
const chain = fc.array(fc.constantFrom(...encodings.keys()), { maxLength: 3 });

/** Control characters survive this reading alone, and base64 or hex that holds one is taken for bytes of chance. */
const isLookedInto = (secret: string, names: readonly string[]): boolean =>
  !names.includes("read as latin1") ||
  !Array.from(secret).some((unit) => unit < " " && !"\t\n\r".includes(unit));

/** What follows is read as the rest of its escape, by a reader and by the masker. */
const beginsAnEscape = /(?:%[\da-f]?|\\(?:u[\da-f]{0,3}|x[\da-f]?)?)$/i;

const encodedBy = (names: readonly string[], text: string): string =>
  names.reduce((before, name) => encodings.get(name)?.(before) ?? before, text);

describe("maskerOf", () => {
  test("leaves no encoding of a secret, alone and beside anything that touches none of it", () => {
    fc.assert(
      fc.property(secretText, chain, (secret, names) => {
        fc.pre(isLookedInto(secret, names));
        const mask = masking.of({ texts: [secret] });
        // "<" and ">" are digits of no encoding.
        expect(mask(`<${encodedBy(names, secret)}>`)).toBe(`<${masking.text}>`);
      }),
      fuzzRuns(2000),
    );
  });

  test("leaves nothing of which anybody could read a secret, wherever it stands in what is encoded", () => {
    fc.assert(
      fc.property(secretText, chain, anyText, anyText, anyText, (secret, names, before, behind, outside) => {
        const text = `${outside}${encodedBy(names, `${before}${secret}${behind}`)}${outside}`;
        const shown = masking.of({ texts: [secret] })(text);
        fc.pre(
          !masking.text.includes(secret) && isLookedInto(secret, names) && !beginsAnEscape.test(outside),
        );
        expect(shown).toContain(masking.text);
        for (const part of shown.split(masking.text))
          for (const reading of readings(part, names.length)) expect(reading).not.toContain(secret);
      }),
      fuzzRuns(500),
    );
  });

  test("changes nothing where there is no secret, and never throws", () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint }), fc.jsonValue(), (text, value) => {
        const mask = masking.of({ texts: ["no text of chance is this"] });
        expect(mask(text)).toBe(text);
        expect(mask([value])).toEqual(JSON.parse(JSON.stringify([value])));
      }),
      fuzzRuns(1000),
    );
  });
});
