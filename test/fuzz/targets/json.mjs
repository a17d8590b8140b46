// parseJsonBytes: accepts exactly the texts in which a walk over the tokens finds no fault, with the value of JSON.parse.
import { isGuardError } from "@countersign/core";
import { parseJsonBytes } from "@countersign/core/internal";
import { assertProperty, assertSame, attempt, words } from "../property.mjs";
import { judgeJson } from "../reference/json.mjs";

const [maxDepth, maxValues] = [6, 24];

export const seeds = [
  '{"a":[1,-0,2.5e3,true,false,null,"x"],"b":{"c":{}}}',
  '{"a":1,"\\u0061":2}',
  '{"__proto__":1}',
  '{"constructor":{"prototype":1}}',
  '{"constructor":1,"prototype":2}',
  '"\\ud83d\\ude00"',
  '"\\ud83d"',
  '"\xf0\x9f\x98\x80"',
  "\xef\xbb\xbf[]",
  '\xef\xbb\xbf\xef\xbb\xbf["\\n"]',
  "[1e400]",
  "[[[[[[1]]]]]]",
  "[[[[[[[1]]]]]]]",
  `[${"1,".repeat(21)}1]`,
  `[${"1,".repeat(25)}1]`,
  " null ",
  "",
];
export const scripts = /\/packages\/[^/]+\/[^/]+\/dist\/|\/node_modules\/secure-json-parse\//;
export const dictionary = [
  "\xef\xbb\xbf",
  "\xed\xa0\x80",
  "\xc0\x80",
  "\xf4\x90\x80\x80",
  "\xc2\x85",
  "\xe2\x80\xa8",
  "\x00",
  "\t",
  "\v",
  ...words`
    " \u0000 \ud800 \udc00 \u005f \\ \" __proto__ "__proto__": constructor prototype "constructor":
    {"prototype":0} null true [] {} ,"a":1 "a": 1e309 -1e999 1e-400
  `,
];

export function run(input) {
  const { value: parsed, error } = attempt(() => parseJsonBytes(input, maxDepth, maxValues));
  const { value, faults, leastValues } = judgeJson(input, maxDepth);
  if (error !== undefined) {
    assertProperty(isGuardError(error), "a refusal is a GuardError", { error });
    if (error.code === "json-too-many-values") {
      // Every value but the first follows a comma or a bracket: an empty list counts as if it had one.
      const most = 1 + (input.toString("latin1").match(/[[{,]/g) ?? []).length;
      assertProperty(error.status === 413 && most > maxValues, "too many values are counted", { most });
    } else {
      assertSame(error.status, 400, "a refusal of JSON is a 400");
      // The levels are counted before the text is known to be JSON.
      const early = error.code === "json-too-deep" && faults.has("json-invalid");
      assertProperty(faults.has(error.code) || early, "a refusal names a fault of the text", {
        error,
        faults,
      });
    }
    return `${error.code} ${[...faults].join(" ")}`;
  }
  assertSame([...faults], [], "what is accepted has no fault");
  assertSame(parsed.value, value, "what is accepted is the value of JSON.parse");
  assertProperty(leastValues <= maxValues, "no more values than the limit", { leastValues });
  return `${typeof value} ${leastValues >> 3}`;
}
