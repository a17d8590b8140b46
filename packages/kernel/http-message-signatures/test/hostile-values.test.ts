import { describe, expect, test } from "@jest/globals";
import { verify, type RequestMessage } from "@countersign/http-message-signatures";
import { sampleCovered, sampleHeaders, signedRequest, strict, verdictOf } from "./hand-signer.ts";
import {
  accepts,
  good,
  refuses,
  withFields,
  withNote,
  withParameters,
  withSignature,
} from "./hostile-rows.ts";

const bytesAs = (encode: (bytes: Buffer) => string): RequestMessage =>
  withSignature((signature) => `sig1=:${encode(Buffer.from(signature.slice(6, -1), "base64"))}:`);
const manyNotes = (count: number): RequestMessage => {
  const names = Array.from({ length: count }, (_, index) => `x-${index}`);
  return signedRequest({
    headers: [...sampleHeaders, ...names.flatMap((name) => [name, "1"])],
    covered: [...sampleCovered, ...names.map((name) => [`"${name}"`, "1"] as const)],
  });
};

describe("bytes, limits and characters", () => {
  accepts([
    ["sixteen components", () => manyNotes(12)],
    ["eight parameters", () => withParameters({ a: "1", b: "?0", c: ":AA==:" })],
    ["quotes and backslashes in a parameter", () => withParameters({ nonce: String.raw`"a\"b\\c"` })],
    ["a field of 4096 characters", () => withParameters({ tag: `"${"x".repeat(4096 - lengthWithTag())}"` })],
  ]);

  refuses([
    [
      "base64 without padding",
      "field-invalid",
      () => bytesAs((bytes) => bytes.toString("base64").slice(0, -2)),
    ],
    [
      "base64 with half the padding",
      "field-invalid",
      () => bytesAs((bytes) => bytes.toString("base64").slice(0, -1)),
    ],
    [
      "base64 with too much padding",
      "field-invalid",
      () => bytesAs((bytes) => `${bytes.toString("base64")}=`),
    ],
    ["non-zero pad bits", "field-invalid", () => bytesAs(withPadBit)],
    ["base64url", "field-invalid", () => withSignature(() => `sig1=:${"-_-_".repeat(21)}-Q==:`)],
    ["a space in base64", "field-invalid", () => withSignature((value) => value.replace("=:", "=: "))],
    ["a line feed in base64", "field-invalid", () => bytesAs((bytes) => `${bytes.toString("base64")}\n`)],
    ["a byte sequence without end", "field-invalid", () => withSignature((value) => value.slice(0, -1))],
    ["an empty byte sequence", "field-invalid", () => withSignature(() => "sig1=::")],
    ["63 bytes", "signature-malformed", () => bytesAs((bytes) => bytes.subarray(0, 63).toString("base64"))],
    [
      "65 bytes",
      "signature-malformed",
      () => bytesAs((bytes) => Buffer.concat([bytes, Buffer.alloc(1)]).toString("base64")),
    ],
    [
      "five labels in Signature-Input",
      "field-limit",
      () => withFields(`a=(), b=(), c=(), d=(), ${good.input}`, good.signature),
    ],
    [
      "five labels in Signature",
      "field-limit",
      () => withFields(good.input, `a=:AA==:, b=:AA==:, c=:AA==:, d=:AA==:, ${good.signature}`),
    ],
    ["seventeen components", "field-limit", () => manyNotes(13)],
    ["nine parameters", "field-limit", () => withParameters({ a: "1", b: "1", c: "1", d: "1" })],
    [
      "nine parameters of a component",
      "field-limit",
      () => withFields('sig1=("a";a;b;c;d;e;f;g;h;i)', good.signature),
    ],
    [
      "a field of 4097 characters",
      "field-limit",
      () => withParameters({ tag: `"${"x".repeat(4097 - lengthWithTag())}"` }),
    ],
    [
      "a Signature of 4097 characters",
      "field-limit",
      () => withSignature((value) => value.padEnd(4097, "x")),
    ],
  ]);

  // Every one of these would verify if anything but the parsed value went into the base.
  refuses([
    ["an unescaped quote in a parameter", "field-invalid", () => withParameters({ nonce: '"a"b"' })],
    ["an escaped letter in a parameter", "field-invalid", () => withParameters({ nonce: String.raw`"\a"` })],
    ["a string without end", "field-invalid", () => withFields(`${good.input};tag="a`, good.signature)],
    ["an escape at the end", "field-invalid", () => withFields(`${good.input};tag="a\\`, good.signature)],
    ["a control character in a parameter", "field-invalid", () => withParameters({ nonce: '"a\u0000"' })],
    ["DEL in a parameter", "field-invalid", () => withParameters({ nonce: '"a\u007f"' })],
    ["non-ASCII in a parameter", "field-invalid", () => withParameters({ nonce: '"a\u00e9"' })],
    ["a line feed in a parameter", "field-invalid", () => withParameters({ nonce: '"a\nb"' })],
    ["non-ASCII in a covered field", "covered-field-invalid", () => withNote("a\u00e9", "a\u00e9")],
    ["a tab in a covered field", "covered-field-invalid", () => withNote("a\tb", "a\tb")],
    ["a line feed in a covered field", "covered-field-invalid", () => withNote("a\nb", "a\nb")],
  ]);

  test("takes linear time on a long run of spaces inside a field", () => {
    const spaces = " ".repeat(1_000_000);
    const message = withNote(`a${spaces}b`, `a${spaces}b`);
    expect(verdictOf(() => verify(message, strict))).toBe("accepted");
    expect(verdictOf(() => verify(withFields(`a${spaces}b`, good.signature), strict))).toBe("field-limit");
  });
});

function lengthWithTag(): number {
  return `${good.input};tag=""`.length;
}

function withPadBit(bytes: Buffer): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const text = bytes.toString("base64");
  const last = alphabet.indexOf(text.charAt(text.length - 3));
  return `${text.slice(0, -3)}${alphabet.charAt(last + 1)}==`;
}
