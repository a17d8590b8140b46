import { describe, expect, test } from "@jest/globals";
import { importVerificationKey, jwkThumbprint } from "@countersign/http-message-signatures";
import { algorithmKeys, keyOf } from "./algorithm-keys.ts";
import { key, publicKey } from "./hand-signer.ts";

describe("jwkThumbprint", () => {
  test("has the value of RFC 8037 appendix A.3", () => {
    const jwk = { kty: "OKP", crv: "Ed25519", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" };
    expect(jwkThumbprint(importVerificationKey("k1", jwk))).toBe(
      "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
    );
  });

  test("is the same for every form and keyid of a key", () => {
    const pem = publicKey.export({ format: "pem", type: "spki" }).toString();
    expect(jwkThumbprint(importVerificationKey("k2", pem))).toBe(jwkThumbprint(key));
  });

  test("throws on a record that was never vetted", () => {
    expect(() => jwkThumbprint({ ...key })).toThrow(/^jwkThumbprint: the key is not one of/);
  });

  test("has the value of RFC 7638 section 3.1", () => {
    const jwk = {
      kty: "RSA",
      n:
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W" +
        "-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08q" +
        "NLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
      e: "AQAB",
      alg: "RS256",
      kid: "2011-04-29",
    };
    const imported = importVerificationKey("2011-04-29", jwk);
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
