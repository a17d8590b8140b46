import { generateKeyPairSync, verify } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import {
  defaultComponents,
  sign,
  verify as verifyRequest,
  type RequestMessage,
} from "@countersign/http-message-signatures";
import {
  now,
  privateKey,
  privatePem,
  publicKey,
  sampleHeaders,
  signByHand,
  strict,
  verdictOf,
} from "./hand-signer.ts";

const message: RequestMessage = { method: "POST", target: "/api/v1/transaction", rawHeaders: sampleHeaders };
const options: Parameters<typeof sign>[1] = {
  key: privateKey,
  keyid: "test-key",
  created: now,
  nonce: "n-0001",
};

const arriving = (fields: { signatureInput: string; signature: string }): RequestMessage => ({
  ...message,
  rawHeaders: [...sampleHeaders, "Signature-Input", fields.signatureInput, "Signature", fields.signature],
});

describe("sign", () => {
  test("writes what the signer on string concatenation writes, byte for byte", () => {
    const { input, signature, base } = signByHand();
    expect(sign(message, options)).toEqual({ signatureInput: input, signature, signatureBase: base });
  });

  test("signs the components of a payout instruction for 60 seconds with a fresh nonce by default", () => {
    const before = Math.floor(Date.now() / 1000);
    const first = verifyRequest(arriving(sign(message, { key: privatePem, keyid: "test-key" })), {
      ...strict,
      now: undefined,
    });
    const second = verifyRequest(arriving(sign(message, { key: privatePem, keyid: "test-key" })), {
      ...strict,
      now: undefined,
    });
    expect(first.coveredComponents).toEqual(["@method", "@path", "content-type", "content-digest"]);
    expect(first.coveredComponents).toEqual(defaultComponents);
    expect(first.created).toBeGreaterThanOrEqual(before);
    expect(Number(first.expires) - Number(first.created)).toBe(60);
    expect(first.label).toBe("sig1");
    expect(first.nonce).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(second.nonce).not.toBe(first.nonce);
  });

  test("writes a tag, and refuses one that is no String", () => {
    const { input } = signByHand({ parameters: { tag: '"payout"' } });
    expect(sign(message, { ...options, tag: "payout" }).signatureInput).toBe(input);
    for (const tag of ["", "p\u00e4y", "t".repeat(257), 1 as never]) {
      expect(() => sign(message, { ...options, tag })).toThrow(/^sign: option tag must be 1 to 256/);
    }
  });

  test("takes a label, components, expires and quotes in the nonce", () => {
    const fields = sign(message, {
      ...options,
      label: "*payout.1",
      components: ["@authority", ...defaultComponents],
      expires: now + 5,
      nonce: String.raw`a"b\c`,
    });
    expect(fields.signatureInput).toContain(String.raw`nonce="a\"b\\c"`);
    expect(verifyRequest(arriving(fields), strict)).toMatchObject({
      label: "*payout.1",
      coveredComponents: ["@authority", ...defaultComponents],
      expires: now + 5,
      nonce: String.raw`a"b\c`,
    });
  });

  test("returns the base that it signed", () => {
    const { signature, signatureBase } = sign(message, options);
    const bytes = Buffer.from(signature.slice("sig1=:".length, -1), "base64");
    expect(verify(null, Buffer.from(signatureBase), publicKey, bytes)).toBe(true);
  });

  test.each<[string, unknown]>([
    ["a public KeyObject", publicKey],
    ["an RSA key", generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey],
    ["an X25519 key", generateKeyPairSync("x25519").privateKey],
    ["a public PEM", publicKey.export({ format: "pem", type: "spki" }).toString()],
    ["text that is no PEM", "secret"],
    ["undefined", undefined],
    ["a Buffer", Buffer.alloc(32)],
  ])("throws on %s as key", (_title, key) => {
    expect(() => sign(message, { ...options, key: key as string })).toThrow(TypeError);
  });

  test.each<[string, Record<string, unknown>]>([
    ["an upper-case label", { label: "Sig1" }],
    ["an empty label", { label: "" }],
    ["a label with a line feed", { label: "sig1\n" }],
    ["an empty keyid", { keyid: "" }],
    ["a missing keyid", { keyid: undefined }],
    ["a keyid outside printable ASCII", { keyid: "k\u00e9" }],
    ["a keyid of 257 characters", { keyid: "k".repeat(257) }],
    ["an empty nonce", { nonce: "" }],
    ["a nonce of 129 characters", { nonce: "n".repeat(129) }],
    ["a nonce with a line feed", { nonce: "n\n" }],
    ["a nonce that is no string", { nonce: 1 }],
    ["created in text", { created: "1800000000" }],
    ["created with a fraction", { created: now + 0.5 }],
    ["created of 16 digits", { created: 1e15 }],
    ["expires that is NaN", { expires: Number.NaN }],
  ])("throws a TypeError on %s", (_title, change) => {
    expect(() => sign(message, { ...options, ...change })).toThrow(TypeError);
    expect(() => sign(message, { ...options, ...change })).toThrow(/^sign: option /);
  });

  test.each<[string, string, readonly string[]]>([
    ["no components", "components-empty", []],
    ["a component twice", "component-duplicate", ["@method", "@method"]],
    ["an unknown derived component", "component-unsupported", ["@status"]],
    ["an upper-case component", "component-name-invalid", ["Content-Type"]],
    ["a field that is not sent", "covered-field-missing", ["date"]],
  ])("refuses %s: %s", (_title, code, components) => {
    expect(verdictOf(() => sign(message, { ...options, components }))).toBe(code);
  });

  test("refuses a target that a verifier would refuse", () => {
    expect(verdictOf(() => sign({ ...message, target: "//example.com/" }, options))).toBe("target-invalid");
  });
});
