import { generateKeyPairSync } from "node:crypto";
import {
  type ImportedKeys,
  importKeys,
  importVerificationKey,
  jwkThumbprint,
} from "@countersign/http-message-signatures";
import { describe, expect, test } from "@jest/globals";
import { algorithmKeys, keyOf } from "./algorithm-keys.ts";
import { key, privateKey, privatePem, publicKey } from "./hand-signer.ts";

const pem = publicKey.export({ format: "pem", type: "spki" }).toString();
const der = publicKey.export({ format: "der", type: "spki" });
const jwk = publicKey.export({ format: "jwk" });
const other = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
const thumbprint = jwkThumbprint(importVerificationKey("any", publicKey));

const keyids = ({ keys }: ImportedKeys): string[] => [...keys.keys()];
const faulty = ({ faults }: ImportedKeys): unknown[] => faults.map(({ keyid }) => keyid);

describe("importKeys", () => {
  test.each<[string, unknown, string[]]>([
    ["a PEM", pem, ["file"]],
    ["the bytes of a PEM", Buffer.from(pem), ["file"]],
    ["base64", der.subarray(12).toString("base64"), ["file"]],
    ["a JWK with a kid", { ...jwk, kid: "k1" }, ["k1"]],
    ["a JWK without a kid", { ...jwk }, ["file"]],
    ["the text of a JWK", JSON.stringify({ ...jwk, kid: "k1" }), ["k1"]],
    [
      "a JWK Set",
      {
        keys: [
          { ...jwk, kid: "k1" },
          { ...other, kid: "k2" },
        ],
      },
      ["k1", "k2"],
    ],
    ["the bytes of a JWK Set", Buffer.from(JSON.stringify({ keys: [{ ...jwk, kid: "k1" }] })), ["k1"]],
    ["a member of a set without a kid, by its thumbprint", { keys: [jwk] }, [thumbprint]],
    ["an empty JWK Set", { keys: [] }, []],
    ["a record", { k1: pem, k2: { ...other } }, ["k1", "k2"]],
    ["a record with the keyid __proto__", JSON.parse(`{"__proto__":${JSON.stringify(pem)}}`), ["__proto__"]],
  ])("reads %s", (_title, document, expected) => {
    const imported = importKeys(document, { keyid: "file" });
    expect(imported.faults).toEqual([]);
    expect(keyids(imported)).toEqual(expected);
  });

  test.each<[string, unknown]>([
    ["an empty record", {}],
    ["JSON that is cut short", '{"keys":['],
    ["DER", der],
    ["too many keys", { keys: Array.from({ length: 101 }, () => jwk) }],
  ])("throws on %s", (_title, document) => {
    expect(() => importKeys(document)).toThrow(/^importVerificationKey: the (?:document|text|key is binary)/);
  });

  test.each<[string, unknown, unknown]>([
    ["a private JWK", { ...privateKey.export({ format: "jwk" }), kid: "bad" }, "bad"],
    ["a kid of control characters", { ...other, kid: "a\u0000b" }, "a\u0000b"],
    ["a kid that is too long", { ...other, kid: "k".repeat(257) }, "k".repeat(257)],
    ["an empty kid", { ...other, kid: "" }, ""],
    ["a kid that is no text", { ...other, kid: 7 }, undefined],
    ["an RSA key that says nothing", { kty: "RSA", kid: "bad" }, "bad"],
    ["a key for encryption", { ...other, use: "enc", kid: "bad" }, "bad"],
    ["null", null, undefined],
    ["a text", "key", undefined],
    ["a list", [other], undefined],
    ["a key that ends before it begins", { ...other, kid: "bad", nbf: 2, exp: 1 }, "bad"],
  ])("leaves %s out, and keeps the others", (_title, bad, keyid) => {
    const imported = importKeys({ keys: [bad, { ...jwk, kid: "good" }] });
    expect(keyids(imported)).toEqual(["good"]);
    expect(faulty(imported)).toEqual([keyid]);
  });

  test("leaves out every key of a keyid that stands there twice", () => {
    const twice = {
      keys: [
        { ...jwk, kid: "a" },
        { ...other, kid: "b" },
        { ...jwk, kid: "b" },
        { ...other, kid: "b" },
      ],
    };
    const imported = importKeys(twice);
    expect(keyids(imported)).toEqual(["a"]);
    expect(faulty(imported)).toEqual(["b", "b"]);
  });

  test("shows nothing of a private key", () => {
    const { faults } = importKeys(privatePem, { keyid: "k1" });
    expect(faults.map(({ error }) => error.message).join()).toMatch(/private key.*openssl pkey/);
    expect(JSON.stringify(faults.map(({ error }) => error.message))).not.toContain("nfKC");
  });

  test("asks for the validity of each keyid, and takes the narrower one", () => {
    const validity = (keyid: string) => ({ subject: `tenant of ${keyid}`, notAfter: 9 });
    const { keys } = importKeys({ keys: [{ ...jwk, kid: "a", exp: 5 }] }, { validity });
    expect(keys.get("a")).toMatchObject({ subject: "tenant of a", notAfter: 5 });
  });
});

describe("jwkThumbprint", () => {
  test("has the value of RFC 8037 appendix A.3", () => {
    const given = { kty: "OKP", crv: "Ed25519", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" };
    expect(jwkThumbprint(importVerificationKey("k1", given))).toBe(
      "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
    );
  });

  test("is the same for every form and keyid of a key", () => {
    expect(jwkThumbprint(importVerificationKey("k2", pem))).toBe(jwkThumbprint(key));
  });

  test("throws on a record that was never vetted", () => {
    expect(() => jwkThumbprint({ ...key })).toThrow(/^jwkThumbprint: the key is not one of/);
  });

  test("has the value of RFC 7638 section 3.1", () => {
    const given = {
      kty: "RSA",
      n:
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W" +
        "-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08q" +
        "NLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
      e: "AQAB",
      alg: "RS256",
      kid: "2011-04-29",
    };
    const imported = importVerificationKey("2011-04-29", given);
    expect(imported.alg).toBe("rsa-v1_5-sha256");
    expect(jwkThumbprint(imported)).toBe("NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
  });

  test("tells all public keys apart, and has none for a secret", () => {
    const shared = keyOf("hmac-sha256").imported;
    const prints = algorithmKeys
      .filter(({ imported }) => imported !== shared)
      .map(({ imported }) => jwkThumbprint(imported));
    expect(new Set(prints).size).toBe(5);
    expect(() => jwkThumbprint(shared)).toThrow(/^jwkThumbprint: the key is a secret/);
  });
});
