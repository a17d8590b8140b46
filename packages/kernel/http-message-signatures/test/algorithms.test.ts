import { describe, expect, test } from "@jest/globals";
import { importVerificationKey, signatureAlgorithms } from "@countersign/http-message-signatures";
import { algorithms } from "../src/algorithms/registry.ts";
import { decoyKey } from "../src/verify.ts";
import { algorithmKeys, keyOf, rfc9421 } from "./algorithm-keys.ts";

describe.each(algorithmKeys.map((key) => [key.alg, key] as const))("%s", (alg, { signing, imported }) => {
  test("has a decoy of its own kind that is made once and verifies nothing", () => {
    const decoy = decoyKey(alg);
    const data = Buffer.from("pay 10.00 EUR to DE89370400440532013000");
    expect(decoyKey(alg)).toBe(decoy);
    expect(decoy.asymmetricKeyType).toBe(imported.publicKey.asymmetricKeyType);
    expect(decoy.asymmetricKeyDetails).toEqual(imported.publicKey.asymmetricKeyDetails);
    expect(algorithms[alg].verify(decoy, data, algorithms[alg].sign(signing, data), "native")).toBe(false);
  });
});

test("every algorithm has a key in these tests", () => {
  expect(algorithmKeys.map(({ alg }) => alg)).toEqual(signatureAlgorithms);
});

describe("the signatures of RFC 9421 appendix B", () => {
  const keys = {
    "rsa-pss-sha512": importVerificationKey("k", without(rfc9421.rsaPss), { alg: "rsa-pss-sha512" }),
    "ecdsa-p256-sha256": importVerificationKey("k", without(rfc9421.p256)),
    ed25519: importVerificationKey("k", without(rfc9421.ed25519)),
    "hmac-sha256": keyOf("hmac-sha256").imported,
  } as const;
  const examples = rfc9421.signatures.map((example) => [example.id, example] as const);

  test.each(examples)("verify under their key: %s", (_id, { alg, signatureBase, signature }) => {
    const key = keys[alg as keyof typeof keys];
    const bytes = Buffer.from(signature, "base64");
    expect(algorithms[alg].verify(key.publicKey, Buffer.from(signatureBase), bytes, "native")).toBe(true);
    expect(algorithms[alg].verify(key.publicKey, Buffer.from(`${signatureBase} `), bytes, "native")).toBe(
      false,
    );
  });

  test.each(examples.filter(([, { alg }]) => alg === "ed25519" || alg === "hmac-sha256"))(
    "are reproduced where they are deterministic: %s",
    (_id, { alg, signatureBase, signature }) => {
      const bytes = algorithms[alg].sign(keyOf(alg).signing, Buffer.from(signatureBase));
      expect(Buffer.from(bytes).toString("base64")).toBe(signature);
    },
  );

  test("are the seven that have a base", () => {
    expect(examples.map(([id]) => id)).toEqual(["B.2.1", "B.2.2", "B.2.3", "B.2.4", "B.2.5", "B.2.6", "B.3"]);
  });
});

function without({ kty, crv, x, y, n, e }: typeof rfc9421.rsa): typeof rfc9421.rsa {
  return JSON.parse(JSON.stringify({ kty, crv, x, y, n, e })) as typeof rfc9421.rsa;
}
