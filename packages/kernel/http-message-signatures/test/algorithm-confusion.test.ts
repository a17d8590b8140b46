import { createSecretKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { importVerificationKey, type SignatureAlgorithm } from "@countersign/http-message-signatures";
import { algorithms } from "../src/algorithms/registry.ts";
import { algorithmKeys, keyOf } from "./algorithm-keys.ts";

type PublicKeyInput = Parameters<typeof importVerificationKey>[1];

const spki = (key: KeyObject): Buffer => key.export({ format: "der", type: "spki" });
const pem = (key: KeyObject): string => key.export({ format: "pem", type: "spki" }).toString();
const ecKey = (namedCurve: string): KeyObject => generateKeyPairSync("ec", { namedCurve }).publicKey;
const rsa = keyOf("rsa-v1_5-sha256").verifying;
const hmac = { alg: "hmac-sha256" } as const;

describe("a public key is never the secret of hmac-sha256:", () => {
  const publicOnes = algorithmKeys.filter(({ alg }) => alg !== "hmac-sha256");
  const forms = publicOnes.flatMap(({ alg, verifying }) =>
    (
      [
        ["the KeyObject", verifying],
        ["the JWK", verifying.export({ format: "jwk" })],
        ["the JWK as bytes", Buffer.from(JSON.stringify(verifying.export({ format: "jwk" })))],
        ["the PEM", pem(verifying)],
        ["the PEM as bytes", Buffer.from(pem(verifying))],
        ["the PEM as bytes without the last line feed", Buffer.from(pem(verifying).trimEnd())],
        ["the SPKI", spki(verifying)],
        ["the base64 of the SPKI as bytes", Buffer.from(spki(verifying).toString("base64"))],
        ["the base64url of the SPKI as bytes", Buffer.from(spki(verifying).toString("base64url"))],
        ["the hex of the SPKI as bytes", Buffer.from(spki(verifying).toString("hex"))],
        ["the PEM in a secret KeyObject", createSecretKey(Buffer.from(pem(verifying)))],
        ["the SPKI in a secret KeyObject", createSecretKey(spki(verifying))],
        ["the SPKI as the k of a JWK", { kty: "oct", k: spki(verifying).toString("base64url") }],
      ] as const
    ).map(([form, input]) => [`${form} of ${alg}`, input] as const),
  );
  test.each(forms)("%s", (_title, input) => {
    const build = (): unknown => importVerificationKey("k1", input, hmac);
    expect(build).toThrow(/^importVerificationKey: /);
  });

  test.each(publicOnes.map(({ alg, signing }) => [alg, signing] as const))(
    "nor is a private one of %s",
    (_alg, key) => {
      const text = key.export({ format: "pem", type: "pkcs8" }).toString();
      const der = key.export({ format: "der", type: "pkcs8" });
      for (const input of [key, Buffer.from(text), der, Buffer.from(der.toString("base64"))]) {
        expect(() => importVerificationKey("k1", input, hmac)).toThrow(/^importVerificationKey: /);
      }
    },
  );

  test("nor is one as PKCS #1, nor one of another curve", () => {
    const other = ecKey("secp256k1").export({ format: "der", type: "spki" });
    for (const input of [rsa.export({ format: "der", type: "pkcs1" }), other]) {
      expect(() => importVerificationKey("k1", input, hmac)).toThrow(/the secret is the DER of a key/);
    }
  });
});

describe("every kind of key against every alg", () => {
  const fits = (alg: SignatureAlgorithm, other: SignatureAlgorithm): boolean =>
    alg === other || (alg.startsWith("rsa-") && other.startsWith("rsa-"));
  const pairs = algorithmKeys.flatMap((key) =>
    algorithmKeys.map((other) => [key.alg, other.alg, key, other] as const),
  );
  test.each(pairs)("%s as %s", (alg, other, { verifying, signing }, { imported }) => {
    const forms: PublicKeyInput[] = [verifying];
    if (verifying.type === "public") {
      forms.push(verifying.export({ format: "jwk" }), spki(verifying).toString("base64"));
      forms.push(pem(verifying), Buffer.from(pem(verifying)));
    }
    for (const form of forms) {
      const build = (): unknown => importVerificationKey("k1", form, { alg: other });
      if (fits(alg, other)) expect(build()).toMatchObject({ alg: other });
      else expect(build).toThrow(/^importVerificationKey: /);
    }
    if (alg === other) return;
    // A signature by one algorithm never passes as one of another, whatever its length.
    const data = Buffer.from("data");
    const signature = algorithms[alg].sign(signing, data);
    expect(algorithms[other].verify(imported.publicKey, data, signature, "native")).toBe(false);
  });
});
