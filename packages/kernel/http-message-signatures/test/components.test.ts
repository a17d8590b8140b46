import { describe, expect, test } from "@jest/globals";
import { coveringComponents, derivedComponents } from "@countersign/http-message-signatures/internal";
import type { RequestMessage } from "@countersign/http-message-signatures";
import { MessageValues } from "../src/components.ts";
import { assertComputable } from "../src/signature-base.ts";
import { collectFieldLines } from "../src/message.ts";
import { verdictOf } from "./hand-signer.ts";

const message: RequestMessage = {
  method: "POST",
  target: "/a/b?c=d&e",
  rawHeaders: ["Host", "Example.COM", "X-List", "1 ", "x-LIST", "\t2,  3", "X-Empty", ""],
};
const valuesOf = (changes: Partial<RequestMessage> = {}): MessageValues => {
  const changed = { ...message, ...changes };
  return new MessageValues(changed, collectFieldLines(changed.rawHeaders));
};
const host = (authority: string, scheme?: "http" | "https"): Partial<RequestMessage> => ({
  rawHeaders: ["Host", authority],
  scheme,
});

describe("MessageValues", () => {
  test.each<[string, string, Partial<RequestMessage>]>([
    ["@path", "/%41%2F", { target: "/%41%2F?" }],
    ["@query", "?", { target: "/a" }],
    ["@request-target", "/a/b?c=d&e", {}],
    ["@authority", "example.com", {}],
    ["@authority", "example.com", host("example.com:443", "https")],
    ["@authority", "example.com", host("example.com:0443", "https")],
    ["@authority", "example.com:443", host("example.com:443", "http")],
    ["@authority", "pay.example", { rawHeaders: [":authority", "inner.example"], authority: "pay.example" }],
    ["x-list", ", ", { rawHeaders: ["X-List", "", "X-List", " "] }],
  ])("computes %s as %j", (name, value, changes) => {
    expect(valuesOf(changes).valueOf(name)).toBe(value);
  });

  test.each<[string, string, string, Partial<RequestMessage>]>([
    ["@target-uri where the scheme is not known", "@target-uri", "covered-field-missing", {}],
    ["an authority with a line feed", "@authority", "covered-field-invalid", { authority: "example.com\n" }],
    [
      "Host as a field where HTTP/2 has :authority alone",
      "host",
      "covered-field-missing",
      { rawHeaders: [":authority", "a.example"] },
    ],
    [
      "a :authority that is malformed",
      "@authority",
      "covered-field-invalid",
      { rawHeaders: [":authority", "me@a.example"] },
    ],
    ["an empty :authority", "@authority", "covered-field-invalid", { rawHeaders: [":authority", ""] }],
    [
      "Host and :authority of two servers beside an origin",
      "@authority",
      "authority-conflict",
      { rawHeaders: [":authority", "a.example", "host", "b.example"], authority: "a.example" },
    ],
    [
      "Host and :authority of two ports",
      "@path",
      "authority-conflict",
      { rawHeaders: [":authority", "a.example", "host", "a.example:443"] },
    ],
    [
      "two Host lines",
      "@path",
      "authority-conflict",
      { rawHeaders: ["Host", "a.example", "host", "a.example"] },
    ],
    [
      "a Kelvin sign in Host beside :authority",
      "@path",
      "authority-conflict",
      { rawHeaders: [":authority", "kiosk.example", "host", "\u212aiosk.example"] },
    ],
  ])("refuses %s", (_title, name, code, changes) => {
    expect(verdictOf(() => valuesOf(changes).valueOf(name))).toBe(code);
  });

  test.each([
    "authorization",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "date",
    "from",
    "idempotency-key",
    "if-modified-since",
    "if-unmodified-since",
    "last-modified",
    "max-forwards",
    "origin",
    "proxy-authorization",
    "range",
    "referer",
    "user-agent",
  ])("refuses two lines of %s, even equal ones", (name) => {
    const values = valuesOf({ rawHeaders: [name, "a", name.toUpperCase(), "a"] });
    expect(verdictOf(() => values.valueOf(name))).toBe("covered-field-repeated");
    expect(valuesOf({ rawHeaders: [name, "a"] }).valueOf(name)).toBe("a");
  });
});

describe("assertComputable", () => {
  const named = (...names: string[]) => names.map((name) => ({ name, parameters: new Map() }));

  test("takes every derived component and any lower-case field name", () => {
    const fields = ["content-digest", "x_1.a", "!#$%&'*+-.^_`|~09az"];
    expect(verdictOf(() => assertComputable(named(...derivedComponents, ...fields)))).toBe("accepted");
  });

  test.each<[string, string, readonly string[]]>([
    ["a line feed", "component-name-invalid", ["date\n"]],
    ["non-ASCII", "component-name-invalid", ["dat\u00e9"]],
    ["an at sign inside", "component-name-invalid", ["a@b"]],
  ])("refuses %s", (_title, code, names) => {
    expect(verdictOf(() => assertComputable(named(...names)))).toBe(code);
  });

  test("refuses parameters before it looks at the name", () => {
    const parameters = new Map([["req", { type: "boolean", value: true } as const]]);
    expect(verdictOf(() => assertComputable([{ name: "@status", parameters }]))).toBe(
      "component-parameter-unsupported",
    );
  });
});

test("has derived components alone among those that cover another one", () => {
  expect(coveringComponents.get("@query")).toEqual(["@query", "@request-target", "@target-uri"]);
  for (const name of [...coveringComponents.values()].flat()) expect(derivedComponents).toContain(name);
});
