import { describe, expect, test } from "@jest/globals";
import {
  createSignatureBase,
  parseSignatureInput,
  type SignatureInput,
} from "@countersign/http-message-signatures";
import type { BareItem } from "../dist/field-scanner.js";
import { serializeSignatureParams } from "../src/signature-base.ts";
import { sampleHeaders, signByHand, verdictOf } from "./hand-signer.ts";

const message = { method: "POST", target: "/api/v1/transaction", rawHeaders: sampleHeaders };

function inputOf(text: string): SignatureInput {
  const input = parseSignatureInput(`x=${text}`).get("x");
  if (input === undefined) throw new Error("no x");
  return input;
}

describe("createSignatureBase", () => {
  test("builds the base that string concatenation builds", () => {
    const { base, input } = signByHand();
    expect(createSignatureBase(message, inputOf(input.slice("sig1=".length)))).toBe(base);
  });

  test("is one line for each component, and no line feed at the end", () => {
    expect(createSignatureBase(message, inputOf('("@method" "@path");a'))).toBe(
      '"@method": POST\n"@path": /api/v1/transaction\n"@signature-params": ("@method" "@path");a',
    );
  });

  test("refuses components that cannot be computed", () => {
    expect(verdictOf(() => createSignatureBase(message, inputOf("()")))).toBe("components-empty");
    expect(verdictOf(() => createSignatureBase(message, inputOf('("@method";req)')))).toBe(
      "component-parameter-unsupported",
    );
  });
});

describe("serializeSignatureParams", () => {
  test.each<[string, string]>([
    ["()", "()"],
    ['( "a"   "b" )', '("a" "b")'],
    ['("a";x;  y=1 "b";z)', '("a";x;y=1 "b";z)'],
    ["();a=?1;b=?0;c", "();a;b=?0;c"],
    ["();a=-0;b=007;c=-15", "();a=0;b=7;c=-15"],
    ["();a=1.0;b=-0.0;c=01.50;d=-0.125", "();a=1.0;b=0.0;c=1.5;d=-0.125"],
    ["();a=999999999999999;b=-999999999999.999", "();a=999999999999999;b=-999999999999.999"],
    [String.raw`();a="\"\\";b=""`, String.raw`();a="\"\\";b=""`],
    ["();a=*t/o:k'n;b=T", "();a=*t/o:k'n;b=T"],
    ["();a=:AA==:;b=::", "();a=:AA==:;b=::"],
    ['("a\\"b\\\\")', '("a\\"b\\\\")'],
  ])("writes %s as %s", (text, canonical) => {
    const { components, parameters } = inputOf(text);
    expect(serializeSignatureParams(components, parameters)).toBe(canonical);
  });

  test("tells types apart that look alike", () => {
    const items: BareItem[] = [
      { type: "integer", value: 1 },
      { type: "decimal", text: "1.0" },
      { type: "string", value: "1" },
      { type: "boolean", value: true },
      { type: "binary", base64: "MQ==" },
      { type: "token", text: "t1" },
      { type: "string", value: "t1" },
      { type: "string", value: "?1" },
    ];
    const texts = items.map((item) => serializeSignatureParams([], new Map([["a", item]])));
    expect(new Set(texts).size).toBe(items.length);
  });
});
