import { describe, expect, test } from "@jest/globals";
import { verify } from "@countersign/http-message-signatures";
import { signByHand, signedRequest, strict, verdictOf } from "./hand-signer.ts";
import { accepts, good, refuses, withFields, withParameters, withSignature } from "./hostile-rows.ts";

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

  test("verifies the canonical form, so other spellings of the same parameters verify as well", () => {
    const spaced = good.input
      .replaceAll(";", ";  ")
      .replace('" "', '"   "')
      .replace("(", "( ")
      .replace(")", " )");
    expect(spaced).not.toBe(good.input);
    expect(verdictOf(() => verify(withFields(spaced, good.signature), strict))).toBe("accepted");
  });
});
