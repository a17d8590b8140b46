import { describe, expect, test } from "@jest/globals";
import { isGuardError } from "@countersign/core";
import * as fc from "fast-check";
import { parse } from "lossless-json";
import { parseJsonBytes } from "../src/wire-text.ts";
import { codePoint } from "@countersign/test-support/runs/code-point.ts";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";

const withoutPrototypes = fc.json({ maxDepth: 6 }).filter((text) => !/__proto__|constructor|\\u/.test(text));

describe("parseJsonBytes", () => {
  test("agrees with JSON.parse on every JSON text", () => {
    fc.assert(
      fc.property(withoutPrototypes, (text) => {
        expect(parseJsonBytes(Buffer.from(text), 64).value).toEqual(JSON.parse(text));
      }),
      fuzzRuns(500),
    );
  });

  test("accepts nothing that the lossless parser refuses", () => {
    fc.assert(
      fc.property(mutatedJson(), (text) => {
        if (isAccepted(Buffer.from(text))) parse(text.startsWith("\uFEFF") ? text.slice(1) : text);
      }),
      fuzzRuns(2000),
    );
  });

  test("answers any bytes with a value or a GuardError of status 400", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array(),
          mutatedJson().map((text) => Buffer.from(text)),
        ),
        (bytes) => {
          expect(typeof isAccepted(Buffer.from(bytes))).toBe("boolean");
        },
      ),
      fuzzRuns(2000),
    );
  });

  test("refuses every object in which one key was repeated", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: codePoint }),
        withoutPrototypes,
        withoutPrototypes,
        (key, first, second) => {
          fc.pre(!/__proto__|constructor/.test(key));
          const name = JSON.stringify(key);
          const bytes = Buffer.from(`{${name}:${first},"other":0,${name}:${second}}`);
          expect(isAccepted(bytes)).toBe(false);
        },
      ),
      fuzzRuns(500),
    );
  });
});

function isAccepted(bytes: Buffer): boolean {
  try {
    parseJsonBytes(bytes, 64);
    return true;
  } catch (error) {
    if (isGuardError(error) && error.status === 400) return false;
    throw error;
  }
}

/** JSON text with one piece cut out or replaced by characters that matter to a parser. */
function mutatedJson(): fc.Arbitrary<string> {
  const token = fc.constantFrom(
    '"',
    "\\",
    ":",
    "{",
    "}",
    "[",
    "]",
    ",",
    "0",
    "-",
    ".",
    "e",
    "\\u",
    "\uFEFF",
    " ",
    "\t",
  );
  return fc
    .tuple(fc.json({ maxDepth: 4 }), fc.nat(), fc.nat(3), fc.array(token, { maxLength: 3 }))
    .map(([text, at, cut, inserted]) => {
      const index = at % (text.length + 1);
      return text.slice(0, index) + inserted.join("") + text.slice(index + cut);
    });
}
