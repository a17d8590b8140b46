import { createPublicKey, createSecretKey, KeyObject, webcrypto } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { importVerificationKey } from "@countersign/http-message-signatures";
import { isVerificationKey } from "@countersign/http-message-signatures/door";
import { rawPublicKey } from "../src/algorithms/ed25519.ts";
import { privateKey, privatePem, publicKey } from "./hand-signer.ts";

type PublicKeyInput = Parameters<typeof importVerificationKey>[1];

const pem = publicKey.export({ format: "pem", type: "spki" }).toString();
const raw = publicKey.export({ format: "der", type: "spki" }).subarray(12);
const jwk = publicKey.export({ format: "jwk" });
// The bytes of a good Ed25519 key under the OID of X25519: nothing but the type is wrong.
const x25519 = createPublicKey({
  key: Buffer.concat([Buffer.from("302a300506032b656e032100", "hex"), raw]),
  format: "der",
  type: "spki",
});

describe("importVerificationKey", () => {
  test.each<[string, PublicKeyInput]>([
    ["an SPKI PEM", pem],
    ["an SPKI PEM with CRLF and empty lines around it", `\n${pem.replaceAll("\n", "\r\n")}\n`],
    ["the raw bytes in base64", raw.toString("base64")],
    ["a KeyObject", publicKey],
    ["a bare JWK", jwk],
    ["a JWK that says everything", { ...jwk, alg: "EdDSA", use: "sig", key_ops: ["verify"], kid: "k1" }],
    ["a JWK of RFC 9864", { ...jwk, alg: "Ed25519" }],
    ["a JWK with members of others", { ...jwk, "x-owner": "lending service" }],
  ])("reads %s", (_title, input) => {
    const key = importVerificationKey("k1", input);
    expect(Buffer.from(rawPublicKey(key.publicKey))).toEqual(raw);
    expect(key.publicKey.equals(publicKey)).toBe(true);
    expect(key).toMatchObject({ keyid: "k1", alg: "ed25519", retired: false });
    expect(isVerificationKey(key)).toBe(true);
    expect(Object.isFrozen(key)).toBe(true);
  });

  test("reads the KeyObject of a web crypto key", async () => {
    const format = { name: "Ed25519" };
    const cryptoKey = await webcrypto.subtle.importKey("raw", raw, format, true, ["verify"]);
    expect(importVerificationKey("k1", KeyObject.from(cryptoKey)).publicKey.equals(publicKey)).toBe(true);
  });

  const bad: [string, unknown][] = [
    ["a private PEM behind a public one", `${pem}${privatePem}`],
    ["a PEM that holds nothing readable", pem.replace("MCow", "AAAA")],
    ["a private KeyObject", privateKey],
    ["a secret KeyObject", createSecretKey(raw)],
    ["an X25519 KeyObject", x25519],
    ["base64 with non-zero pad bits", raw.toString("base64").replace(/.=$/, "t=")],
    ["an array", [...raw]],
    ["null", null],
    ["undefined", undefined],
    ["a number", 1],
    ["a JWK of another kty", { ...jwk, kty: "EC" }],
    ["a JWK without curve", { ...jwk, crv: undefined }],
    ["a JWK with alg none", { ...jwk, alg: "none" }],
    ["a JWK for signing", { ...jwk, key_ops: ["sign"] }],
    ["a JWK for signing and verifying", { ...jwk, key_ops: ["verify", "sign"] }],
    ["a JWK without any operation", { ...jwk, key_ops: [] }],
    ["a JWK whose key_ops are no list", { ...jwk, key_ops: "verify" }],
    ["a JWK without x", { ...jwk, x: undefined }],
    ["a JWK whose x is no text", { ...jwk, x: 1 }],
  ];
  test.each(bad)("throws on %s", (_title, input) => {
    expect(() => importVerificationKey("k1", input as PublicKeyInput)).toThrow(TypeError);
    expect(() => importVerificationKey("k1", input as PublicKeyInput)).toThrow(/^importVerificationKey: /);
  });

  test.each<[string, unknown]>([
    ["empty", ""],
    ["too long", "k".repeat(257)],
    ["outside printable ASCII", "k\u00e9"],
    ["with a line feed", "k1\n"],
    ["no string", 1],
  ])("throws on a keyid that is %s", (_title, keyid) => {
    expect(() => importVerificationKey(keyid as string, publicKey)).toThrow(/the keyid must be 1 to 256/);
  });

  test.each<[string, Record<string, unknown>]>([
    ["notBefore of another type", { notBefore: "1800000000" }],
    ["notBefore with a fraction", { notBefore: 0.5 }],
    ["notBefore below zero", { notBefore: -1 }],
    ["notAfter as a Date", { notAfter: new Date() }],
    ["notAfter that is NaN", { notAfter: Number.NaN }],
    ["notAfter before notBefore", { notBefore: 2, notAfter: 1 }],
    ["retired as text", { retired: "true" }],
    ["retired as null", { retired: null }],
  ])("throws on %s", (_title, options) => {
    expect(() => importVerificationKey("k1", publicKey, options)).toThrow(TypeError);
  });

  test("keeps the validity", () => {
    const validity = { notBefore: 1, notAfter: 1, retired: true };
    expect(importVerificationKey("k1", publicKey, validity)).toMatchObject(validity);
  });
});

test("isVerificationKey knows what importVerificationKey made, and nothing that looks like it", () => {
  const key = importVerificationKey("k1", publicKey);
  for (const value of [{ ...key }, Object.create(key) as unknown, publicKey, "k1", null, undefined]) {
    expect(isVerificationKey(value)).toBe(false);
  }
});
