// numberTextAt: of every JSON body that is accepted, each number by its pointer with its digits, and no digits where no number is.
import { isGuardError } from "@countersign/core";
import { recordRawBody } from "@countersign/core/internal";
import { numberTextAt, parseJsonBody } from "@countersign/raw-body";
import { assertProperty, assertSame, attempt, words } from "../property.mjs";
import { numberTexts } from "../reference/json.mjs";

export const scripts = /\/packages\/[^/]+\/[^/]+\/dist\/|\/node_modules\/lossless-json\//;
export const seeds = [
  '{"amount":{"value":10.10,"currency":"EUR"}}',
  '[1,-0,-0.0,1e5,1E+05,12345678901234567890,0.1e-2,[2,{"":3}]]',
  '{"a/b":1,"c~d":2,"~1":3,"0":4,"length":5,"toString":6}',
  '{"isLosslessNumber":true,"value":"7","\\u0041":8}',
  '{"constructor":{"name":9}}',
  "10",
  " 1.0\n",
  "\xef\xbb\xbf[1]",
];
export const dictionary = [
  "\xc2\xa0",
  "\xe2\x80\xa8",
  "\xef\xbb\xbf",
  "\t",
  "\r\n",
  ...words`
    "value": "isLosslessNumber":true "length": "constructor": "toString": "0": "": ~0 ~1 / 1.10 -0
    1e5 1E-05 0.000 9007199254740993 [1] {} , : [ ] { } " \u0031 \n \/ null true 0x1 +1 1. .1 01
  `,
];

export function run(input) {
  const request = { rawHeaders: ["Content-Type", "application/json"] };
  recordRawBody(request, input);
  const { value: parsed, error } = attempt(() => parseJsonBody(request, 64));
  if (error !== undefined) {
    assertProperty(isGuardError(error), "a refusal is a GuardError", { error });
    return error.code;
  }
  const texts = numberTexts(parsed.text);
  for (const [pointer, digits] of texts) {
    assertSame(numberTextAt(request, pointer), digits, "a number has the digits that were received");
    for (const beyond of ["/", "/0", "/-1", "/length", "/value", "/constructor"]) {
      const expected = texts.get(pointer + beyond);
      assertSame(
        numberTextAt(request, pointer + beyond),
        expected,
        "where no number stands there are no digits",
      );
    }
  }
  const numbers = [...texts.values()].filter((digits) => digits !== undefined);
  return `${Math.min(4, numbers.length)} ${texts.size > numbers.length} ${numbers.some((digits) => /e/i.test(digits))}`;
}
