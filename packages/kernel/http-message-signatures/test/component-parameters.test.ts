import { describe, expect, test } from "@jest/globals";
import {
  createSignatureBase,
  type RequestMessage,
  type ResponseMessage,
} from "@countersign/http-message-signatures";
import type { Message } from "../dist/message.js";
import { componentIdentifiers } from "@countersign/http-message-signatures/internal";
import { verdictOf } from "./hand-signer.ts";
import type { FieldTypes } from "../dist/message.js";

const request: RequestMessage = {
  method: "POST",
  target: "/a?param=value&foo=bar&qux=&twice=1&twice=2&spaced=with+plus%20and%0Aline&fa%C3%A7ade%22%3A%20=x",
  rawHeaders: [
    ["Host", "example.com", "Content-Type", "application/json"],
    ["Example-Dict", " a=1,    b=2;x=1;y=2,   c=(a   b;q   c), d;p", "Example-Dict", "e=?0;z"],
    ["Example-Header", "value, with, lots", "Example-Header", "of, commas "],
    ["Bytes", "caf\u00e9", "Priority", "u=1, u=2", "Empty-Dict", "", "Sec-CH-UA", '"a";v="1",  "b"'],
    ["Client-Cert", " :AAEC: ", "Signature", "sig1=:AAEC:, sig2=:AwQF:"],
  ].flat(),
  rawTrailers: ["Expires", "Wed, 9 Nov 2022 07:28:00 GMT", "Example-Dict", "t=1"],
};
const response: ResponseMessage = { status: 503, rawHeaders: ["Content-Type", "text/plain"], request };
const fieldTypes: FieldTypes = { "example-dict": "dictionary", "empty-dict": "dictionary" };

const valueOf = (text: string, message: Message = request): string => {
  const components = [componentIdentifiers.parse(text)];
  const base = createSignatureBase(message, { components, parameters: new Map() }, fieldTypes);
  return base.split("\n")[0]?.slice(text.startsWith('"') ? text.length + 2 : text.length + 4) ?? "";
};

describe("the values of components with parameters (RFC 9421 sections 2.1 to 2.4)", () => {
  test.each<[text: string, value: string]>([
    ['"example-dict";sf', "a=1, b=2;x=1;y=2, c=(a b;q c), d;p, e=?0;z"],
    ['"example-dict";key="e"', "?0;z"],
    ['"sec-ch-ua";sf', '"a";v="1", "b"'],
    ['"signature";key="sig2"', ":AwQF:"],
    ['"example-header";bs', ":dmFsdWUsIHdpdGgsIGxvdHM=:, :b2YsIGNvbW1hcw==:"],
    ['"@query-param";name="spaced"', "with%20plus%20and%0Aline"],
  ])("are those of the RFC for a request: %s is %j", (text, value) => {
    expect(valueOf(text)).toBe(value);
  });

  test.each<[text: string, value: string]>([
    ["@status", "503"],
    ['"content-type";req', "application/json"],
  ])("are those of the RFC for a response: %s is %j", (text, value) => {
    expect(valueOf(text, response)).toBe(value);
  });

  test.each<[text: string, code: string, message?: Message]>([
    ['"content-type";req', "component-parameter-unsupported"],
    ['"constructor";sf', "component-parameter-unsupported"],
    ['"example-dict";key', "component-parameter-unsupported"],
    ['"example-dict";name="a"', "component-parameter-unsupported"],
    ['"@method";tr', "component-parameter-unsupported"],
    ['"@query-param";name="a";bs', "component-parameter-unsupported"],
    ['"@query-param";req', "component-unsupported", response],
    ["@method", "component-unsupported", response],
    ["@query-param", "component-unsupported", response],
    ['"content-type";req', "component-parameter-unsupported", { ...response, request: undefined }],
    ['"content-type";tr', "component-parameter-unsupported", response],
    ['"host";tr', "covered-field-missing"],
    ['"expires";bs', "covered-field-missing"],
    ['"example-dict";key="z"', "covered-field-missing"],
    ['"example-dict";key="a";tr', "covered-field-missing"],
    ['"empty-dict";sf', "covered-field-invalid"],
    ['"priority";sf', "covered-field-invalid", { ...request, rawHeaders: ["Priority", 'a="\u00e9"'] }],
    ['"priority";sf', "covered-field-invalid", { ...request, rawHeaders: ["Priority", "a=1\n"] }],
    ['"priority";sf', "covered-field-invalid", { ...request, rawHeaders: ["Priority", "a=1;\tb"] }],
    ['"a";bs', "covered-field-invalid", { ...request, rawHeaders: ["A", "1\n2"] }],
    ['"a";bs', "covered-field-invalid", { ...request, rawHeaders: ["A", "\u20ac"] }],
    ['"date";bs', "covered-field-repeated", { ...request, rawHeaders: ["Date", "1", "Date", "2"] }],
    ['"priority";sf', "field-limit", { ...request, rawHeaders: ["Priority", `a="${"x".repeat(4096)}"`] }],
    ['"@query-param";name="twice"', "covered-field-repeated"],
    ['"@query-param";name="a"', "covered-field-missing", { ...request, target: "/a" }],
    ['"@query-param";name="a"', "covered-field-missing", { ...request, target: "/?b=2;a=1" }],
    ['"@query-param";name="a"', "covered-field-invalid", { ...request, target: "/?a=1&b=%" }],
    ["@status", "covered-field-invalid", { status: Number.NaN, rawHeaders: [] }],
  ])("refuse %s: %s (%#)", (text, code, message = request) => {
    expect(verdictOf(() => valueOf(text, message))).toBe(code);
  });

  test.each([
    ['"example-dict";sf;key="a"', '"example-dict";key="a";sf'],
    ['"@query-param";name="foo";req', '"@query-param";req;name="foo"'],
    ["content-type", '"content-type"'],
  ])("are covered once, whatever the order of parameters: %s and %s", (one, other) => {
    const components = [one, other].map(componentIdentifiers.parse);
    const input = { components, parameters: new Map() };
    const message = one.includes("req") ? response : request;
    expect(verdictOf(() => createSignatureBase(message, input, fieldTypes))).toBe("component-duplicate");
  });
});

describe("parseComponentIdentifier", () => {
  test.each(["", " ", "a b", '"a', '"a";', '"a" "b"', '"a";X', "a;sf", "@a@b", '("a")', 1, undefined])(
    "throws a TypeError on %j",
    (text) => {
      expect(() => componentIdentifiers.parse(text as string)).toThrow(TypeError);
    },
  );
});

test("what comes from code and has no serialisation gets no base", () => {
  const component = componentIdentifiers.parse("@method");
  for (const item of [
    { type: "string", value: "a\nb" },
    { type: "string", value: "\u00e9" },
    { type: "integer", value: 1e15 },
    { type: "integer", value: 0.5 },
    { type: "decimal", text: "1.50" },
    { type: "decimal", text: "-0.0" },
    { type: "token", text: "a b" },
    { type: "binary", base64: "AA" },
  ] as const) {
    const input = { components: [component], parameters: new Map([["a", item]]) };
    expect(verdictOf(() => createSignatureBase(request, input))).toBe("field-invalid");
  }
  const flag = { type: "boolean", value: true } as const;
  const input = { components: [component], parameters: new Map([["a\nb", flag]]) };
  expect(verdictOf(() => createSignatureBase(request, input))).toBe("field-invalid");
});
