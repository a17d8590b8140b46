import { describe, expect, test } from "@jest/globals";
import { parseByteSequenceDictionary } from "@countersign/http-message-signatures/internal";
import { parseSignatureInput, readSignature } from "@countersign/http-message-signatures";
import type { BareItem } from "../dist/field-scanner.js";
import { profile, verdictOf } from "./hand-signer.ts";

const valueOf = (text: string): BareItem | undefined =>
  parseSignatureInput(`x=();v=${text}`).get("x")?.parameters.get("v");

describe("bare items", () => {
  test.each<[string, BareItem]>([
    ["0", { type: "integer", value: 0 }],
    ["-0", { type: "integer", value: 0 }],
    ["-42", { type: "integer", value: -42 }],
    ["007", { type: "integer", value: 7 }],
    ["999999999999999", { type: "integer", value: 999_999_999_999_999 }],
    ["1.0", { type: "decimal", text: "1.0" }],
    ["-00.10", { type: "decimal", text: "-0.1" }],
    ["123456789012.125", { type: "decimal", text: "123456789012.125" }],
    ['""', { type: "string", value: "" }],
    ['" ~"', { type: "string", value: " ~" }],
    [String.raw`"\\\""`, { type: "string", value: '\\"' }],
    ["a", { type: "token", text: "a" }],
    ["*/:!#$%&'+-.^_`|~", { type: "token", text: "*/:!#$%&'+-.^_`|~" }],
    ["Z0", { type: "token", text: "Z0" }],
    ["?0", { type: "boolean", value: false }],
    ["?1", { type: "boolean", value: true }],
    ["::", { type: "binary", base64: "" }],
    [":+/8=:", { type: "binary", base64: "+/8=" }],
  ])("reads %s", (text, item) => {
    expect(valueOf(text)).toEqual(item);
  });

  test("reads -0 as 0, so that the sign cannot make two of one", () => {
    const item = valueOf("-0");
    expect(item?.type === "integer" && Object.is(item.value, 0)).toBe(true);
  });

  test.each([
    "",
    "--1",
    ".5",
    "-.5",
    "1.2.3",
    "1234567890123.0",
    "1e3",
    "0x1",
    "?",
    "?t",
    "?01",
    ":A:",
    ":AA:",
    ":AAA",
    ":AAB=:",
    ":AA=:",
    ":A===:",
    ":====:",
    ":AAAA====:",
    ":AAA\u00c1:",
    '%"a"',
    "(a)",
    "{}",
    "'a'",
    "_a",
    "a\u00e9",
    " 1",
    "1 2",
  ])("refuses %j", (text) => {
    expect(verdictOf(() => valueOf(text))).toBe("field-invalid");
  });
});

describe("parseSignatureInput", () => {
  test("keeps members, components and parameters in order", () => {
    const inputs = parseSignatureInput(' b=("x";p=1 "@y");q;r="s" ,\ta=( )\t');
    expect([...inputs.keys()]).toEqual(["b", "a"]);
    expect(inputs.get("a")).toEqual({ components: [], parameters: new Map() });
    expect(inputs.get("b")).toEqual({
      components: [
        { name: "x", parameters: new Map([["p", { type: "integer", value: 1 }]]) },
        { name: "@y", parameters: new Map() },
      ],
      parameters: new Map([
        ["q", { type: "boolean", value: true }],
        ["r", { type: "string", value: "s" }],
      ]),
    });
  });

  test("takes labels of a dictionary key", () => {
    const inputs = parseSignatureInput("*=(), a0_-.*=(), a__proto__=()");
    expect([...inputs.keys()]).toEqual(["*", "a0_-.*", "a__proto__"]);
  });

  test.each([
    "",
    " ",
    "\ta=()",
    "a",
    "a=",
    'a="b"',
    "a=)",
    'a=("b"',
    "a=() b=()",
    "a=(), ",
    "a=(),,b=()",
    "a=();",
    "a=();1",
    "a=();b ;c",
    "-a=()",
    "a =()",
    "a= ()",
    "a=()\u00e9",
    "a=()\u0000",
  ])("refuses %j", (text) => {
    expect(verdictOf(() => parseSignatureInput(text))).toBe("field-invalid");
  });
});

describe("parseByteSequenceDictionary", () => {
  test("reads bytes by key", () => {
    const bytes = parseByteSequenceDictionary("sha-256=:AAE=:, *x=:/w==:");
    expect([...bytes]).toEqual([
      ["sha-256", Buffer.from([0, 1])],
      ["*x", Buffer.from([255])],
    ]);
  });

  test("names the field in the message", () => {
    expect(() => parseByteSequenceDictionary("A", "Content-Digest")).toThrow(/^Content-Digest has a key/);
    expect(() => parseByteSequenceDictionary("A")).toThrow(/^the field has a key/);
  });
});

test.each<[string, string]>([
  ["spaces", " "],
  ["tabs", "\t"],
  ["quotes", '"'],
  ["backslashes", "\\"],
  ["opening brackets", "("],
  ["colons", ":"],
  ["semicolons", ";"],
  ["digits", "1"],
  ["letters", "a"],
  ["commas", ","],
  ["key and value pairs", "a=1,"],
  ["parameters", ";a"],
  ["components", '"a" '],
])("a field of a million %s is refused", (_title, unit) => {
  const long = unit.repeat(1_000_000 / unit.length);
  for (const prefix of ["", "a=", "a=(", "a=()", 'a=("', "a=:", 'a=();b="', "a=();b="]) {
    for (const value of [prefix + long, (prefix + long).slice(0, 4096)]) {
      const message = {
        method: "POST",
        target: "/",
        rawHeaders: ["Signature-Input", value, "Signature", value],
      };
      expect(verdictOf(() => readSignature(message, profile))).toMatch(/^field-(?:invalid|limit)$/);
    }
  }
});
