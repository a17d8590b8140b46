import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { eventTexts } from "../../../dist/webhooks/envelope/event-text.js";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";

describe("eventTexts()", () => {
  test.each<[string, string, readonly string[]]>([
    ["none", '{"events":[]}', []],
    ["numbers as they are written", '{"events":[1.10, 1e2 ,-0.0]}', ["1.10", "1e2", "-0.0"]],
    ["words and texts", '{"events":[true ,null\n,"a\\"],[\\\\"]}', ["true", "null", '"a\\"],[\\\\"']],
    ["space inside, none around", '\t{ "events" : [ { "a" : [ ] } , [ ] ] }\r\n', ['{ "a" : [ ] }', "[ ]"]],
    ["an escaped name", '{"\\u0065vents":[{"a":"}"}]}', ['{"a":"}"}']],
    ["after and before others", '{"a":{"events":[1]},"events":[2],"b":[{"events":[3]}],"c":4}', ["2"]],
    [
      "nested ones of the name",
      '{"events":[{"events":[[1],{"events":[]}]}]}',
      ['{"events":[[1],{"events":[]}]}'],
    ],
    ["escapes as they are written", '{"events":["\\u00e9\\/é"]}', ['"\\u00e9\\/é"']],
  ])("takes %s", (_case, json, texts) => {
    expect([...eventTexts(json)]).toEqual(texts);
  });

  test("takes any JSON with any space, whatever surrounds it", () => {
    const space = fc.constantFrom("", " ", "\n", "\t\r\n ");
    fc.assert(
      fc.property(fc.array(fc.json()), fc.json(), space, (texts, other, gap) => {
        const array = `[${gap}${texts.join(`${gap},${gap}`)}${gap}]`;
        const json = `${gap}{"a${gap.length}":${other}${gap},${gap}"events"${gap}:${gap}${array},"events2":${other}}${gap}`;
        expect([...eventTexts(json)]).toEqual(texts.map((text) => text.trim()));
      }),
      fuzzRuns(300),
    );
  });
});
