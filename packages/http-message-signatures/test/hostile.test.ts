import { describe, expect, test } from "@jest/globals";
import { verify, type RequestMessage } from "@countersign/http-message-signatures";
import { sampleCovered, sampleHeaders, signByHand, signedRequest, strict, verdictOf } from "./hand-signer.ts";
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

describe("syntax and selection", () => {
  accepts([
    ["a request signed by hand", () => signedRequest()],
    [
      "a foreign label in Signature-Input alone",
      () => withFields(`${good.input}, proxy=("@method");created=1`, good.signature),
    ],
    ["a foreign label in Signature alone", () => withFields(good.input, `proxy=:AAAA:, ${good.signature}`)],
    [
      "a whole foreign signature of another profile",
      () =>
        withFields(`proxy=("@method");alg="hmac-sha256", ${good.input}`, `proxy=:AAAA:, ${good.signature}`),
    ],
    ["any label", () => signedRequest({ label: "*a_b-c.d*0" })],
    [
      "labels in two header lines",
      () => {
        const message = withFields(good.input, good.signature);
        const foreign = ["signature-input", 'proxy=("@method")', "SIGNATURE", "proxy=:AAAA:"];
        return { ...message, rawHeaders: [...message.rawHeaders, ...foreign] };
      },
    ],
    ["spaces and tabs around a field", () => withFields(` \t${good.input}\t `, `\t ${good.signature} \t`)],
    [
      "optional white space around the comma",
      () => withFields(`${good.input}\t ,\t x=("@method")`, good.signature),
    ],
    ["four labels", () => withFields(`a=(), b=(), c=(), ${good.input}`, good.signature)],
    ["sixteen components", () => manyNotes(12)],
    ["eight parameters", () => withParameters({ a: "1", b: "?0", c: ":AA==:" })],
    ["quotes and backslashes in a parameter", () => withParameters({ nonce: String.raw`"a\"b\\c"` })],
    ["a field of 4096 characters", () => withParameters({ tag: `"${"x".repeat(4096 - lengthWithTag())}"` })],
  ]);

  refuses([
    ["neither Signature nor Signature-Input", "signature-missing", () => withFields(undefined, undefined)],
    ["Signature alone", "signature-missing", () => withFields(undefined, good.signature)],
    ["Signature-Input alone", "signature-missing", () => withFields(good.input, undefined)],
    ["an empty Signature-Input", "field-invalid", () => withFields("", good.signature)],
    ["an empty Signature", "field-invalid", () => withFields(good.input, " ")],
    [
      "a label in one field only",
      "signature-missing",
      () => withFields(good.input, good.signature.replace("sig1", "sig2")),
    ],
    [
      "a label twice in one line",
      "field-invalid",
      () => withFields(good.input, `${good.signature}, sig1=:AAAA:`),
    ],
    [
      "a label twice in Signature-Input",
      "field-invalid",
      () => withFields(`${good.input}, sig1=()`, good.signature),
    ],
    [
      "a label twice across lines",
      "field-invalid",
      () => {
        const message = withFields(good.input, good.signature);
        return { ...message, rawHeaders: [...message.rawHeaders, "signature", good.signature] };
      },
    ],
    ["a parameter twice", "field-invalid", () => withFields(`${good.input};nonce="n-0002"`, good.signature)],
    [
      "two signatures that fit the profile",
      "signature-ambiguous",
      () => {
        const other = signByHand({ label: "sig2", parameters: { nonce: '"n-0002"' } });
        return withFields(`${good.input}, ${other.input}`, `${good.signature}, ${other.signature}`);
      },
    ],
    ["a label without a value", "field-invalid", () => withFields("sig1;created=1", good.signature)],
    ["an item in place of the inner list", "field-invalid", () => withFields("sig1=1", good.signature)],
    ["a string in place of the byte sequence", "field-invalid", () => withFields(good.input, 'sig1="AAAA"')],
    ["a token in place of the byte sequence", "field-invalid", () => withFields(good.input, "sig1=AAAA")],
    [
      "an inner list in place of the byte sequence",
      "field-invalid",
      () => withFields(good.input, "sig1=(:AAAA:)"),
    ],
    ["parameters on the byte sequence", "field-invalid", () => withSignature((value) => `${value};a=1`)],
    ["a token as component", "field-invalid", () => withFields("sig1=(method)", good.signature)],
    ["a byte sequence as component", "field-invalid", () => withFields("sig1=(:AAAA:)", good.signature)],
    ["a nested inner list", "field-invalid", () => withFields('sig1=(("@method"))', good.signature)],
    [
      "components without a space",
      "field-invalid",
      () => withFields('sig1=("@method""@path")', good.signature),
    ],
    [
      "a tab between components",
      "field-invalid",
      () => withFields('sig1=("@method"\t"@path")', good.signature),
    ],
    ["an inner list without end", "field-invalid", () => withFields('sig1=("@method"', good.signature)],
    ["an upper-case label", "field-invalid", () => signedRequest({ label: "Sig1" })],
    ["an upper-case parameter", "field-invalid", () => withParameters({ Tag: "1" })],
    ["a Date parameter", "field-invalid", () => withParameters({ tag: "@1800000000" })],
    ["a Display String parameter", "field-invalid", () => withParameters({ tag: '%"a"' })],
    ["a comma at the end", "field-invalid", () => withFields(`${good.input},`, good.signature)],
    ["two commas", "field-invalid", () => withFields(good.input, `a=:AAAA:,,${good.signature}`)],
    ["members without a comma", "field-invalid", () => withFields(good.input, `a=:AAAA: ${good.signature}`)],
    ["text behind a member", "field-invalid", () => withFields(good.input, `${good.signature}x`)],
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

  test("verifies the canonical form, so other spellings of the same parameters verify as well", () => {
    const spaced = good.input
      .replaceAll(";", ";  ")
      .replace('" "', '"   "')
      .replace("(", "( ")
      .replace(")", " )");
    expect(spaced).not.toBe(good.input);
    expect(verdictOf(() => verify(withFields(spaced, good.signature), strict))).toBe("accepted");
  });

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
