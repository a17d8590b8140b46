import { createHash, createSecretKey } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { importVerificationKey, signatureAlgorithms } from "@countersign/http-message-signatures";
import { algorithms } from "../src/algorithms/registry.ts";
import { decoyKey } from "../src/verify.ts";
import { algorithmKeys, keyOf, rfc9421 } from "./algorithm-keys.ts";

const data = Buffer.from("pay 10.00 EUR to DE89370400440532013000");

describe.each(algorithmKeys.map((key) => [key.alg, key] as const))("%s", (alg, { signing, imported }) => {
  const { sign, verify, verifyAsync } = algorithms[alg];
  const good = Buffer.from(sign(signing, data));
  const verdicts = async (signature: Uint8Array, signed: Uint8Array = data): Promise<boolean[]> => [
    verify(imported.publicKey, signed, signature, "native"),
    verify(imported.publicKey, signed, signature, "noble"),
    await verifyAsync(imported.publicKey, signed, signature),
  ];

  test("verifies what it signs, nothing too", async () => {
    expect(await verdicts(good)).toEqual([true, true, true]);
    const none = Buffer.alloc(0);
    expect(await verdicts(sign(signing, none), none)).toEqual([true, true, true]);
  });

  test("refuses other data", async () => {
    expect(await verdicts(good, Buffer.from("pay 99.00 EUR"))).toEqual([false, false, false]);
  });

  test.each([
    ["no bytes", Buffer.alloc(0)],
    ["a byte less", good.subarray(1)],
    ["a byte less at the end", good.subarray(0, -1)],
    ["a zero byte before", Buffer.concat([Buffer.alloc(1), good])],
    ["a zero byte behind", Buffer.concat([good, Buffer.alloc(1)])],
    ["itself twice", Buffer.concat([good, good])],
    ["zeros", Buffer.alloc(good.length)],
    ["ones", Buffer.alloc(good.length, 0xff)],
  ])("refuses %s", async (_title, bytes) => {
    expect(await verdicts(bytes)).toEqual([false, false, false]);
  });

  test("has a decoy of its own kind that is made once and verifies nothing", () => {
    const decoy = decoyKey(alg);
    expect(decoyKey(alg)).toBe(decoy);
    expect(decoy.asymmetricKeyType).toBe(imported.publicKey.asymmetricKeyType);
    expect(decoy.asymmetricKeyDetails).toEqual(imported.publicKey.asymmetricKeyDetails);
    expect(verify(decoy, data, good, "native")).toBe(false);
  });
});

test("every algorithm has a key in these tests", () => {
  expect(algorithmKeys.map(({ alg }) => alg)).toEqual(signatureAlgorithms);
});

describe("ECDSA", () => {
  const orders = {
    "ecdsa-p256-sha256": "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551",
    "ecdsa-p384-sha384":
      "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973",
  } as const;
  const scalar = (value: bigint, length: number): Buffer =>
    Buffer.from(value.toString(16).padStart(2 * length, "0"), "hex");

  test.each(["ecdsa-p256-sha256", "ecdsa-p384-sha384"] as const)("%s has r and s below the order", (alg) => {
    const { signing, imported } = keyOf(alg);
    const good = Buffer.from(algorithms[alg].sign(signing, data));
    const length = good.length / 2;
    const n = BigInt(`0x${orders[alg]}`);
    const [r, s] = [good.subarray(0, length), good.subarray(length)];
    const verdict = (...parts: readonly Uint8Array[]): boolean =>
      algorithms[alg].verify(imported.publicKey, data, Buffer.concat(parts), "native");
    for (const value of [0n, n, n + 1n]) {
      expect(verdict(scalar(value, length), s)).toBe(false);
      expect(verdict(r, scalar(value, length))).toBe(false);
    }
    // The other of the two values of s (SEC 1 section 4.1.4 takes both).
    expect(verdict(r, scalar(n - BigInt(`0x${s.toString("hex")}`), length))).toBe(true);
  });

  test("has no signature in DER", () => {
    const { signing, imported } = keyOf("ecdsa-p256-sha256");
    const p1363 = Buffer.from(algorithms["ecdsa-p256-sha256"].sign(signing, data));
    const der = Buffer.concat([
      Buffer.from("3046022100", "hex"),
      p1363.subarray(0, 32),
      Buffer.from("022100", "hex"),
      p1363.subarray(32),
    ]);
    expect(algorithms["ecdsa-p256-sha256"].verify(imported.publicKey, data, der, "native")).toBe(false);
  });
});

describe("RSA", () => {
  test("v1.5 signs the encoding of RFC 8017 section 9.2, byte for byte", () => {
    const { signing, jwk } = keyOf("rsa-v1_5-sha256");
    const signature = Buffer.from(algorithms["rsa-v1_5-sha256"].sign(signing, data));
    const number = (text = ""): bigint => BigInt(`0x${Buffer.from(text, "base64url").toString("hex")}`);
    const opened = power(BigInt(`0x${signature.toString("hex")}`), number(jwk.e), number(jwk.n));
    const digestInfo = `3031300d060960864801650304020105000420${createHash("sha256").update(data).digest("hex")}`;
    expect(opened.toString(16).padStart(512, "0")).toBe(`0001${"ff".repeat(202)}00${digestInfo}`);
  });

  test("PSS signatures differ each time, v1.5 ones do not", () => {
    const twice = (alg: "rsa-pss-sha512" | "rsa-v1_5-sha256"): boolean => {
      const { signing } = keyOf(alg);
      const [one, other] = [algorithms[alg].sign(signing, data), algorithms[alg].sign(signing, data)];
      return Buffer.from(one).equals(other);
    };
    expect(twice("rsa-v1_5-sha256")).toBe(true);
    expect(twice("rsa-pss-sha512")).toBe(false);
  });

  test("a signature of one padding is none of the other under the same key", () => {
    const { signing, verifying } = keyOf("rsa-v1_5-sha256");
    for (const [one, other] of [
      ["rsa-pss-sha512", "rsa-v1_5-sha256"],
      ["rsa-v1_5-sha256", "rsa-pss-sha512"],
    ] as const) {
      const signature = algorithms[one].sign(signing, data);
      expect(algorithms[one].verify(verifying, data, signature, "native")).toBe(true);
      expect(algorithms[other].verify(verifying, data, signature, "native")).toBe(false);
    }
  });

  test("a signature plus the modulus is refused", () => {
    const { signing, imported, jwk } = keyOf("rsa-v1_5-sha256");
    const { sign, verify } = algorithms["rsa-v1_5-sha256"];
    const n = BigInt(`0x${Buffer.from(jwk.n ?? "", "base64url").toString("hex")}`);
    // Small enough for the sum to have the same length, which about half of all signatures are.
    for (let index = 0; index < 64; index++) {
      const signed = Buffer.from(String(index));
      const sum = n + BigInt(`0x${Buffer.from(sign(signing, signed)).toString("hex")}`);
      if (sum >= 2n ** 2048n) continue;
      const bytes = Buffer.from(sum.toString(16).padStart(512, "0"), "hex");
      expect(verify(imported.publicKey, signed, bytes, "native")).toBe(false);
      return;
    }
    throw new Error("no signature of 64 was small enough");
  });
});

test("hmac-sha256 is RFC 4231, case 7, whose key is longer than a block", () => {
  const secret = createSecretKey(Buffer.alloc(131, 0xaa));
  const text =
    "This is a test using a larger than block-size key and a larger than block-size data. " +
    "The key needs to be hashed before being used by the HMAC algorithm.";
  const tag = algorithms["hmac-sha256"].sign(secret, Buffer.from(text));
  expect(Buffer.from(tag).toString("hex")).toBe(
    "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
  );
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

function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let [result, square] = [1n, base % modulus];
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % modulus;
    square = (square * square) % modulus;
  }
  return result;
}
