import {
  createPrivateKey,
  createSecretKey,
  generateKeyPairSync,
  randomBytes,
  type KeyObject,
} from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import {
  createSigner,
  sign,
  verifySignature,
  type ReceivedSignature,
  type SignatureAlgorithm,
} from "@countersign/http-message-signatures";
import type { SigningKeyInput } from "../dist/signer.js";
import { algorithms } from "../src/algorithms/registry.ts";
import { algorithmKeys, keyOf, rfc9421 } from "./algorithm-keys.ts";
import { verdictOf } from "./hand-signer.ts";
import { receivedBy } from "./received-by.ts";

const data = Buffer.from("data");
const signingKey = (key: SigningKeyInput, alg?: SignatureAlgorithm) => createSigner(key, "test-key", alg);
const message = { method: "POST", target: "/", rawHeaders: ["Content-Type", "application/json"] };
const privatePem = (alg: SignatureAlgorithm): string =>
  keyOf(alg).signing.export({ format: "pem", type: "pkcs8" }).toString();

describe("sign takes a key of each algorithm", () => {
  const forms = algorithmKeys.flatMap(({ alg, jwk, signing }) => {
    const inputs: [string, SigningKeyInput][] = [
      ["KeyObject", signing],
      ...(alg === "hmac-sha256"
        ? [["bytes", signing.export()] as [string, SigningKeyInput]]
        : ([
            ["JWK", jwk],
            ["PEM", privatePem(alg)],
          ] as [string, SigningKeyInput][])),
    ];
    return inputs.map(([form, input]) => [alg, form, input] as const);
  });

  test.each(forms)("%s as %s", (alg, _form, key) => {
    const { signatureInput, signature, signatureBase } = sign(message, {
      key,
      alg,
      keyid: "test-key",
      components: ["@method", "content-type"],
    });
    expect(signatureInput).toContain(`;alg="${alg}"`);
    const bytes = Buffer.from(signature.slice("sig1=:".length, -1), "base64");
    const { publicKey } = keyOf(alg).imported;
    expect(algorithms[alg].verify(publicKey, Buffer.from(signatureBase), bytes, "native")).toBe(true);
  });

  test.each(["ed25519", "ecdsa-p256-sha256", "ecdsa-p384-sha384"] as const)("%s by the key alone", (alg) => {
    expect(signingKey(keyOf(alg).signing).alg).toBe(alg);
    expect(signingKey(privatePem(alg)).alg).toBe(alg);
  });

  test.each([
    ["PS512", "rsa-pss-sha512"],
    ["RS256", "rsa-v1_5-sha256"],
  ] as const)("RSA by a JWK of %s", (name, alg) => {
    expect(signingKey({ ...rfc9421.rsa, alg: name }).alg).toBe(alg);
  });

  test("RSA-PSS by the type of the key", () => {
    const { privateKey } = generateKeyPairSync("rsa-pss", { modulusLength: 2048 });
    for (const each of [privateKey, pssKey("040203", "40")]) {
      const key = signingKey(each);
      expect(key.alg).toBe("rsa-pss-sha512");
      expect(key.sign(data)).toHaveLength(256);
    }
  });
});

const secret = randomBytes(32);
const oct = { kty: "oct", k: secret.toString("base64url") };
const publicPem = keyOf("rsa-v1_5-sha256").verifying.export({ format: "pem", type: "spki" }).toString();
const rsa1024 = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey;
/** The RSA key of the RFC, bound to other parameters of PSS (RFC 4055 section 3.1). */
function pssKey(digest: string, salt: string): KeyObject {
  const der = keyOf("rsa-v1_5-sha256").signing.export({ format: "der", type: "pkcs8" });
  const identifier = `304106092a864886f70d01010a3034a00f300d0609608648016503${digest}0500a11c301a06092a864886f70d010108300d0609608648016503${digest}0500a2030201${salt}`;
  const rest = Buffer.concat([Buffer.from(`020100${identifier}`, "hex"), der.subarray(22)]);
  const head = Buffer.from([0x30, 0x82, rest.length >> 8, rest.length & 0xff]);
  return createPrivateKey({ key: Buffer.concat([head, rest]), format: "der", type: "pkcs8" });
}
// The only other kind that has a modulus, and long enough.
const dsa = generateKeyPairSync("dsa", { modulusLength: 2048, divisorLength: 224 }).privateKey;
const k1 = generateKeyPairSync("ec", { namedCurve: "secp256k1" }).privateKey;

describe("sign refuses as key", () => {
  test.each<[string, unknown, SignatureAlgorithm | undefined, RegExp]>([
    [
      "RSA without alg",
      keyOf("rsa-v1_5-sha256").signing,
      undefined,
      /does not say its algorithm; write alg: "rsa-pss-sha512" or "rsa/,
    ],
    [
      "a secret KeyObject without alg",
      createSecretKey(secret),
      undefined,
      /a secret of at least 32 bytes with alg: "hmac-sha256"/,
    ],
    ["a JWK of kty oct without alg", oct, undefined, /with alg hmac-sha256 a secret/],
    ["the bytes of a secret without alg", secret, undefined, /with alg hmac-sha256 a secret/],
    ["a secret of 31 bytes", secret.subarray(1), "hmac-sha256", /a secret of at least 32 bytes/],
    ["a text as a secret", "a".repeat(32), "hmac-sha256", /the secret is a text, which has several readings/],
    ["a public PEM as a secret", Buffer.from(publicPem), "hmac-sha256", /the secret is the text of a key/],
    ["a JWK of kty oct", oct, "hmac-sha256", /expected a secret .*: Buffer\.from\(jwk\.k, "base64url"\)/],
    ["a private JWK as HMAC", rfc9421.p256, "hmac-sha256", /expected a secret as Buffer/],
    ["RSA of 1,024 bits", rsa1024, "rsa-pss-sha512", /RSA with 2,048 to 8,192 bits/],
    ["an RSA-PSS key of SHA-256", pssKey("040201", "20"), "rsa-pss-sha512", /expected a private key/],
    ["an RSA-PSS key of a shorter salt", pssKey("040203", "20"), "rsa-pss-sha512", /expected a private key/],
    ["an RSA-PSS key of a longer salt", pssKey("040203", "41"), "rsa-pss-sha512", /expected a private key/],
    ["an RSA-PSS key as v1.5", pssKey("040203", "40"), "rsa-v1_5-sha256", /is one of rsa-pss-sha512, not of/],
    ["DSA", dsa, "rsa-pss-sha512", /expected a private key/],
    ["secp256k1", k1, undefined, /on Ed25519, P-256 or P-384/],
    ["secp256k1 as P-256", k1, "ecdsa-p256-sha256", /on Ed25519, P-256 or P-384/],
    [
      "P-256 as P-384",
      keyOf("ecdsa-p256-sha256").signing,
      "ecdsa-p384-sha384",
      /is one of ecdsa-p256-sha256, not of/,
    ],
    [
      "Ed25519 as HMAC",
      keyOf("ed25519").signing,
      "hmac-sha256",
      /KeyObject is a private key; hmac-sha256 takes a secret/,
    ],
    [
      "a public RSA key as HMAC",
      keyOf("rsa-v1_5-sha256").verifying,
      "hmac-sha256",
      /KeyObject is a public key; hmac-sha256 takes a secret/,
    ],
    ["a secret as Ed25519", createSecretKey(secret), "ed25519", /expected a private key on Ed25519/],
    ["the bytes of a secret as Ed25519", secret, "ed25519", /option key: expected a/],
    [
      "a JWK of RS256 as rsa-pss",
      { ...rfc9421.rsa, alg: "RS256" },
      "rsa-pss-sha512",
      /is one of rsa-v1_5-sha256, not/,
    ],
    ["a JWK of PS256", { ...rfc9421.rsa, alg: "PS256" }, "rsa-pss-sha512", /another alg than PS512 or RS256/],
    ["a JWK of ES384 on P-256", { ...rfc9421.p256, alg: "ES384" }, undefined, /another alg than ES256/],
    ["a JWK for encryption", { ...rfc9421.p256, use: "enc" }, undefined, /another use than sig/],
    ["a JWK for verifying", { ...rfc9421.p256, key_ops: ["verify"] }, undefined, /key_ops without sign/],
    ["a public JWK", { ...rfc9421.p256, d: undefined }, undefined, /option key: expected a/],
    [
      "an unknown alg",
      keyOf("ed25519").signing,
      "EdDSA" as SignatureAlgorithm,
      /option alg must be one of ed25519/,
    ],
  ])("%s", (_title, key, alg, text) => {
    const build = (): unknown => signingKey(key as SigningKeyInput, alg);
    expect(build).toThrow(TypeError);
    expect(build).toThrow(/^sign: option /);
    expect(build).toThrow(text);
  });
});

describe("verifySignature of a signature by", () => {
  test.each(algorithmKeys.map((key) => [key.alg, key] as const))("%s", (alg, { imported }) => {
    const received = receivedBy(alg);
    const verdict = (changes: Partial<ReceivedSignature>, key = imported): string =>
      verdictOf(() => verifySignature({ ...received, ...changes }, key));
    expect(verdict({})).toBe("accepted");
    expect(verdict({ signature: received.signature.subarray(1) })).toBe("signature-mismatch");
    for (const other of algorithmKeys) {
      if (other.alg !== alg) expect(verdict({}, other.imported)).toBe("alg-mismatch");
    }
  });
});
