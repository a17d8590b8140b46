import { answer, refuse } from "@countersign/idempotency-guard";
import { describe, expect, test } from "@jest/globals";
import { givenAnswer } from "../src/answer.ts";

const json = [["content-type", "application/json; charset=utf-8"]];
const circle: { self?: unknown } = {};
circle.self = circle;

describe("answer()", () => {
  test.each<[string, Parameters<typeof answer>, number, unknown, string]>([
    ["a status alone", [204], 204, [], ""],
    ["an object", [201, { id: 7, none: undefined }], 201, json, '{"id":7}'],
    ["null", [200, null], 200, json, "null"],
    ["a text", [202, "\u20ac"], 202, json, '"\u20ac"'],
  ])("takes %s", (_case, given, status, headers, body) => {
    const made = answer(...given);
    expect({ ...made, body: String(made.body) }).toMatchObject({ status, headers, body });
    expect(givenAnswer(made)).toBe(made);
  });

  test("serialises at once: what the handler changes later is not sent", () => {
    const body = { id: 7 };
    const made = answer(200, body);
    body.id = 8;
    expect(String(made.body)).toBe('{"id":7}');
  });

  test.each([undefined, null, 5, "text", { status: 500 }, [answer(201)], () => answer(201)])(
    "is what %p, returned by a handler, is not: 200 without content",
    (returned) => {
      expect(givenAnswer(returned)).toMatchObject({ status: 200, headers: [], body: Buffer.alloc(0) });
    },
  );

  test.each<[string, unknown, string]>([
    ["a refusal", refuse("account-frozen"), "the handler has refused: account-frozen"],
    ["an error", new Error("not paid"), "not paid"],
    ["a Response", new Response("not paid", { status: 422 }), "return answer(status, body), or throw refuse"],
  ])(
    "is not what a handler means that returns %s: it is thrown, and nothing is paid",
    (_case, returned, why) => {
      expect(() => givenAnswer(returned)).toThrow(why);
    },
  );

  test("is known when another copy of the package made it", () => {
    const foreign = {
      status: 201,
      headers: [],
      body: Buffer.alloc(0),
      [Symbol.for("countersign.HandlerAnswer")]: true,
    };
    expect(givenAnswer(foreign)).toBe(foreign);
  });

  test.each<[string, readonly unknown[], RegExp]>([
    ...[100, 199, 206, 300, 400, 409, 500, 200.5, Number.NaN, "200", undefined].map(
      (status): [string, readonly unknown[], RegExp] => [
        `the status ${status}`,
        [status],
        /throw refuse\(code\)/,
      ],
    ),
    ["a body of 204", [204, {}], /a 204 has no body/],
    ["a body of 205", [205, ""], /a 205 has no body/],
    ["a function", [200, () => {}], /a value that JSON can hold/],
    ["a symbol", [200, Symbol("s")], /a value that JSON can hold/],
    ["a circle", [200, circle], /circular/i],
    ["a bigint", [200, { id: 7n }], /BigInt/],
  ])("refuses %s", (_case, given, message) => {
    const make = (): unknown => Reflect.apply(answer, undefined, given);
    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
  });
});

describe("refuse()", () => {
  test.each<[Parameters<typeof refuse>, object]>([
    [["account-frozen"], { status: 400, problem: { code: "account-frozen" } }],
    [["a1-2"], { status: 400, code: "a1-2" }],
    [
      ["too-late", { status: 422, detail: "closed" }],
      { status: 422, problem: { code: "too-late", detail: "closed" } },
    ],
  ])("makes a refusal of %j", (given, expected) => {
    expect(refuse(...given)).toMatchObject(expected);
  });

  const statuses = [200, 399, 401, 404, 408, 409, 429, 500, 503, 400.5, "400", null];
  test.each<[unknown[], RegExp]>([
    ...[
      "",
      "Frozen",
      "account frozen",
      "account_frozen",
      "-a",
      "a-",
      "a--b",
      "1a",
      "\u00e4",
      5,
      undefined,
    ].map((code): [unknown[], RegExp] => [[code], /code must be in kebab-case, such as "account-frozen"/]),
    ...statuses.map((status): [unknown[], RegExp] => [
      ["a", { status }],
      /status must be from 400 to 499 and none of 401/,
    ]),
    [["a", { detail: 5 }], /detail must be a string/],
  ])("refuses %j", (given, message) => {
    const make = (): unknown => Reflect.apply(refuse, undefined, given);
    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
  });
});
