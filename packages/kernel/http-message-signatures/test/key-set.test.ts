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

  // Whoever reads a set: importKeys for all of it, importVerificationKey for one keyid.
  const x25519 = generateKeyPairSync("x25519").publicKey.export({ format: "jwk" });
  const ed448 = generateKeyPairSync("ed448").publicKey.export({ format: "jwk" });
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({ format: "jwk" });
  const good = { ...jwk, kid: "good" };
  const privateJwk = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  const readBoth = (beside: readonly unknown[]): unknown[] =>
    [
      [...beside, good],
      [good, ...beside],
    ].flatMap((keys) => {
      const { keys: imported } = importKeys({ keys });
      const document = JSON.stringify({ keys });
      let one: unknown;
      try {
        one = importVerificationKey("good", document);
      } catch {
        // Refused.
      }
      return [imported.get("good"), one];
    });

  test.each<[string, readonly unknown[]]>([
    ["a key for encryption with its kid", [{ ...other, kid: "good", use: "enc" }]],
    ["an RSA key for encryption with its kid", [{ ...rsa, kid: "good", use: "enc", alg: "RSA-OAEP" }]],
    ["an expired key for encryption with its kid", [{ ...other, kid: "good", use: "enc", exp: 1 }]],
    ["a key for key agreement with its kid", [{ ...x25519, kid: "good", key_ops: ["deriveKey"] }]],
    ["a key of an unknown kty with its kid", [{ kty: "AKP", alg: "ML-DSA-44", kid: "good" }]],
    ["a key of an unusable crv with its kid", [{ ...ed448, kid: "good" }]],
    ["a key of an unusable alg with its kid", [{ ...rsa, kid: "good", alg: "PS256" }]],
    ["a damaged key with its kid", [{ kty: "RSA", kid: "good" }]],
    ["a damaged key with another kid", [{ ...other, kid: "bad", x: "AA" }]],
    ["a private key with another kid", [{ ...privateJwk, kid: "bad" }]],
    ["a private key without a kid", [privateJwk]],
    ["a secret with another kid", [{ kty: "oct", k: "c2VjcmV0", kid: "bad" }]],
    ["an expired key without a kid", [{ ...rsa, alg: "RS256", exp: 1 }]],
    ["a usable key without a kid", [other]],
    [
      "two usable keys with one other kid",
      [
        { ...other, kid: "bad" },
        { ...other, kid: "bad" },
      ],
    ],
    ["members that are no keys", [null, "key", 7, [other], {}]],
  ])("uses a good key of a set beside %s", (_title, beside) => {
    for (const found of readBoth(beside)) {
      expect(found).toMatchObject({
        keyid: "good",
        alg: "ed25519",
        notAfter: undefined,
        revokedAt: undefined,
      });
      expect((found as { publicKey: typeof publicKey }).publicKey.equals(publicKey)).toBe(true);
    }
  });

  test.each<[string, readonly unknown[]]>([
    ["another key that verifies", [{ ...other, kid: "good" }]],
    ["another key that says use sig", [{ ...other, kid: "good", use: "sig" }]],
    ["a key of another algorithm", [{ ...rsa, kid: "good", alg: "RS256" }]],
    ["the same key again", [good]],
    ["a private key", [{ ...privateJwk, kid: "good" }]],
    ["its own private key", [{ ...privateKey.export({ format: "jwk" }), kid: "good", use: "enc" }]],
  ])("refuses a keyid that means a good key and %s", (_title, beside) => {
    expect(readBoth(beside)).toEqual([undefined, undefined, undefined, undefined]);
    const { faults } = importKeys({ keys: [good, ...beside] });
    expect(faults).toMatchObject([{ keyid: "good", isForOthers: false }]);
  });

  test("revokes a good key by a damaged key with its kid that says revoked", () => {
    const damaged = { kty: "OKP", crv: "Ed25519", kid: "good", revoked: { revoked_at: 5 } };
    for (const found of readBoth([damaged])) expect(found).toMatchObject({ revokedAt: 5 });
  });

  test.each<[string, unknown, boolean]>([
    ["a key for encryption", { ...other, kid: "bad", use: "enc" }, true],
    ["a key for encryption by key_ops", { ...other, kid: "bad", key_ops: ["encrypt"] }, true],
    ["a key of an unknown kty", { kty: "AKP", kid: "bad" }, true],
    ["a key of an unusable crv", { ...x25519, kid: "bad" }, true],
    ["a key of an unusable alg", { ...rsa, kid: "bad", alg: "RSA-OAEP" }, true],
    ["a damaged key", { ...other, kid: "bad", x: "AA" }, false],
    ["a private key for encryption", { ...privateJwk, kid: "bad", use: "enc" }, false],
    ["a secret", { kty: "oct", k: "c2VjcmV0", kid: "bad", use: "enc" }, false],
    [
      "a key for signing by key_ops and verifying",
      { ...other, kid: "bad", key_ops: ["sign", "verify"] },
      false,
    ],
  ])("tells whether %s is for others", (_title, bad, isForOthers) => {
    expect(importKeys({ keys: [bad] }).faults).toMatchObject([{ keyid: "bad", isForOthers }]);
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
    expect(faulty(imported)).toEqual(["b"]);
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
