import { describe, expect, test } from "@jest/globals";
import { captureRawBody, jsonBody, numberTextAt, textAt } from "@countersign/raw-body";
import type { GuardRequest, GuardResponse } from "@countersign/express";
import { requestOf } from "./harness.ts";

const body = String.raw`{
  "amount": { "value": 10.10, "minor": 9007199254740993, "text": "10.10" },
  "a/b": { "m~n": 1E+2 }, "": -0.0, "list": [1.0, [2.00]],
  "like": { "isLosslessNumber": true, "value": "1" }
}`;

describe("numberTextAt", () => {
  test.each([
    ["trailing zeros", "/amount/value", "10.10"],
    ["digits beyond 2^53", "/amount/minor", "9007199254740993"],
    ["an exponent behind escaped tokens", "/a~1b/m~0n", "1E+2"],
    ["a negative zero behind an empty token", "/", "-0.0"],
    ["an array element", "/list/0", "1.0"],
    ["a nested array element", "/list/1/0", "2.00"],
  ])("gives %s as received", (_name, pointer, digits) => {
    const req = parsedRequest(body);
    expect([numberTextAt(req, pointer), numberTextAt(req, pointer)]).toEqual([digits, digits]);
  });

  test.each([
    ["a string", "/amount/text"],
    ["an object", "/amount"],
    ["the whole body", ""],
    ["nothing", "/amount/missing/deeper"],
    ["an inherited property", "/amount/constructor"],
    ["the length of an array", "/list/length"],
    ["an index with a leading zero", "/list/00"],
    ["an index past the end", "/list/2"],
    ["a step into a number", "/amount/value/value"],
    ["an object that imitates the parser's own type", "/like"],
  ])("is undefined for %s", (_name, pointer) => {
    expect(numberTextAt(parsedRequest(body), pointer)).toBeUndefined();
  });

  test("answers for a body that is one number", () => {
    expect(numberTextAt(parsedRequest("1.50"), "")).toBe("1.50");
  });

  test("does not follow changes of req.body", () => {
    const req = parsedRequest(body);
    req.body = { amount: { value: 1 } };
    expect(numberTextAt(req, "/amount/value")).toBe("10.10");
  });

  test.each(["amount/value", "/a~2", "/~", "amount"])("throws on the pointer %j", (pointer) => {
    expect(() => numberTextAt(parsedRequest(body), pointer)).toThrow(TypeError);
  });

  test("throws where jsonBody() did not run", () => {
    expect(() => numberTextAt(requestOf({}), "/amount/value")).toThrow(/mount jsonBody\(\)/);
  });
});

function parsedRequest(text: string): GuardRequest {
  const req = requestOf({ "Content-Type": "application/json" });
  captureRawBody(req, undefined, Buffer.from(text));
  let outcome: unknown = "next was not called";
  jsonBody()(req, {} as GuardResponse, (error) => {
    outcome = error;
  });
  expect(outcome).toBeUndefined();
  return req;
}

describe("textAt", () => {
  test.each([
    ['{"value":10.10}', "/value", "10.10"],
    ['{"value":"10.10"}', "/value", "10.10"],
    ['{"value":"\\u0031\\"0"}', "/value", '1"0'],
    ['{"value":[1,"2"]}', "/value/1", "2"],
    ['{"value":true}', "/value", undefined],
    ['{"value":{"a":"1"}}', "/value", undefined],
    ['{"value":null}', "/value", undefined],
    ['{"value":""}', "/value", ""],
    ['{"value":1}', "/other", undefined],
  ])("of %s at %s is %s", (json, pointer, text) => {
    expect(textAt(parsedRequest(json), pointer)).toBe(text);
  });

  test("names itself where nothing was parsed", () => {
    expect(() => textAt({}, "/a")).toThrow(/^textAt: mount jsonBody\(\)/);
    expect(() => textAt({}, "a")).toThrow(/^textAt: pointer must be/);
  });
});
