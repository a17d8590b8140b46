import {
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  randomBytes,
  type KeyObject,
} from "node:crypto";
import { p256 } from "@noble/curves/nist.js";
import { describe, expect, test } from "@jest/globals";
import { importVerificationKey, type SignatureAlgorithm } from "@countersign/http-message-signatures";
import { keyOf, rfc9421 } from "./algorithm-keys.ts";
import { testRefusals, type PublicKeyInput, type RefusedKey } from "./key-refusals.ts";

const spki = (key: KeyObject): Buffer => key.export({ format: "der", type: "spki" });
const base64 = (der: Buffer): string => der.toString("base64");
const pem = (key: KeyObject): string => key.export({ format: "pem", type: "spki" }).toString();
const ecKey = (namedCurve: string): KeyObject => generateKeyPairSync("ec", { namedCurve }).publicKey;

const es256 = keyOf("ecdsa-p256-sha256").verifying;
const es384 = keyOf("ecdsa-p384-sha384").verifying;
const rsa = keyOf("rsa-v1_5-sha256").verifying;
const es256Jwk = es256.export({ format: "jwk" });
const es384Jwk = es384.export({ format: "jwk" });
const rsaJwk = rsa.export({ format: "jwk" });
const secret = randomBytes(32);
const oct = { kty: "oct", k: secret.toString("base64url") };
const pss = { alg: "rsa-pss-sha512" } as const;
const pkcs1 = { alg: "rsa-v1_5-sha256" } as const;
const hmac = { alg: "hmac-sha256" } as const;

/** A SubjectPublicKeyInfo with the same key and another AlgorithmIdentifier. */
function withIdentifier(key: KeyObject, hex: string): Buffer {
  const bits = Buffer.from("0382010f00", "hex");
  const der = spki(key);
  const rest = Buffer.concat([Buffer.from(hex, "hex"), der.subarray(der.indexOf(bits))]);
  return Buffer.concat([
    Buffer.from("3082", "hex"),
    Buffer.from([rest.length >> 8, rest.length & 0xff]),
    rest,
  ]);
}
const pssParameters =
  "304106092a864886f70d01010a3034a00f300d06096086480165030402030500a11c301a06092a864886f70d010108300d06096086480165030402030500a203020140";
const pssParametersWithoutNull =
  "303d06092a864886f70d01010a3030a00d300b0609608648016503040203a11a301806092a864886f70d010108300b0609608648016503040203a203020140";
describe("importVerificationKey takes", () => {
  const taken: [string, unknown, RefusedKey[2], SignatureAlgorithm, KeyObject][] = [
    ["a P-256 PEM", pem(es256), {}, "ecdsa-p256-sha256", es256],
    ["a P-256 SPKI in base64", base64(spki(es256)), {}, "ecdsa-p256-sha256", es256],
    ["a P-256 KeyObject", es256, {}, "ecdsa-p256-sha256", es256],
    ["a P-256 JWK", es256Jwk, {}, "ecdsa-p256-sha256", es256],
    [
      "a P-256 JWK that says everything",
      { ...es256Jwk, alg: "ES256", use: "sig", key_ops: ["verify"], kid: "k1" },
      { alg: "ecdsa-p256-sha256" },
      "ecdsa-p256-sha256",
      es256,
    ],
    ["a P-256 JWK as JSON text", JSON.stringify(es256Jwk), {}, "ecdsa-p256-sha256", es256],
    ["a P-384 PEM", pem(es384), {}, "ecdsa-p384-sha384", es384],
    ["a P-384 JWK", { ...es384Jwk, alg: "ES384" }, {}, "ecdsa-p384-sha384", es384],
    ["an RSA PEM with alg", pem(rsa), pss, "rsa-pss-sha512", rsa],
    ["an RSA PEM with the other alg", pem(rsa), pkcs1, "rsa-v1_5-sha256", rsa],
    ["an RSA SPKI in base64url", spki(rsa).toString("base64url"), pss, "rsa-pss-sha512", rsa],
    ["an RSA KeyObject", rsa, pkcs1, "rsa-v1_5-sha256", rsa],
    ["an RSA JWK with option alg", rsaJwk, pkcs1, "rsa-v1_5-sha256", rsa],
    ["an RSA JWK of PS512", { ...rsaJwk, alg: "PS512" }, {}, "rsa-pss-sha512", rsa],
    ["an RSA JWK of RS256", { ...rsaJwk, alg: "RS256" }, {}, "rsa-v1_5-sha256", rsa],
    [
      "an RSA-PSS SPKI without parameters",
      base64(withIdentifier(rsa, "300b06092a864886f70d01010a")),
      {},
      "rsa-pss-sha512",
      rsa,
    ],
    [
      "an RSA-PSS SPKI with its parameters",
      base64(withIdentifier(rsa, pssParameters)),
      {},
      "rsa-pss-sha512",
      rsa,
    ],
    [
      "an RSA-PSS KeyObject",
      createPublicKey({ key: withIdentifier(rsa, pssParameters), format: "der", type: "spki" }),
      {},
      "rsa-pss-sha512",
      rsa,
    ],
    [
      "the key of the wanted alg in a JWK Set",
      { keys: [es256Jwk, es384Jwk, rsaJwk] },
      { alg: "ecdsa-p384-sha384" },
      "ecdsa-p384-sha384",
      es384,
    ],
    [
      "the RSA key of a JWK Set that says its alg",
      {
        keys: [
          { ...rsaJwk, alg: "RS256" },
          { ...rsaJwk, alg: "PS256" },
        ],
      },
      {},
      "rsa-v1_5-sha256",
      rsa,
    ],
    ["the bytes of a secret", secret, hmac, "hmac-sha256", createSecretKey(secret)],
    ["a secret KeyObject", createSecretKey(secret), hmac, "hmac-sha256", createSecretKey(secret)],
  ];
  test.each(taken)("%s", (_title, input, options, alg, expected) => {
    const key = importVerificationKey("k1", input as PublicKeyInput, options);
    expect(key.alg).toBe(alg);
    expect(key.publicKey.equals(expected)).toBe(true);
  });

  test("a copy of a secret, which may change later", () => {
    const bytes = Buffer.from(secret);
    const key = importVerificationKey("k1", bytes, hmac);
    bytes.fill(0);
    expect(key.publicKey.equals(createSecretKey(secret))).toBe(true);
  });
});

const compressed = base64(
  Buffer.concat([
    Buffer.from("3039301306072a8648ce3d020106082a8648ce3d030107032200", "hex"),
    p256.Point.fromBytes(spki(es256).subarray(26)).toBytes(true),
  ]),
);
const withPoint = (edit: (point: Buffer) => void): string => {
  const der = Buffer.from(spki(es256));
  edit(der.subarray(26));
  return base64(der);
};
const modulus = Buffer.from(rsaJwk.n ?? "", "base64url");
const withModulus = (edit: (bytes: Buffer) => void): string => {
  const bytes = Buffer.from(modulus);
  edit(bytes);
  return bytes.toString("base64url");
};
const exponent = (hex: string): string => Buffer.from(hex, "hex").toString("base64url");
const rsa2047 = { ...rsaJwk, n: withModulus((bytes) => (bytes[0] = 0x7f)) };
const longModulus = Buffer.concat([modulus, modulus, modulus, modulus, Buffer.alloc(1, 0xff)]);

const unreadable = /is cut short, damaged, or holds no public key/;
const refused: RefusedKey[] = [
  [
    "secp256k1",
    ecKey("secp256k1"),
    {},
    /on the curve secp256k1; expected an Ed25519, P-256, P-384 or RSA key/,
  ],
  ["P-521", pem(ecKey("P-521")), {}, /on the curve secp521r1/],
  ["P-224", base64(spki(ecKey("secp224r1"))), {}, /on the curve secp224r1/],
  ["brainpoolP256r1", ecKey("brainpoolP256r1"), {}, /on the curve brainpoolP256r1/],
  ["Ed448", generateKeyPairSync("ed448").publicKey, {}, /of type ed448; expected an Ed25519/],
  ["a JWK of P-521", ecKey("P-521").export({ format: "jwk" }), {}, /crv P-256 or P-384/],
  ["a JWK of secp256k1", ecKey("secp256k1").export({ format: "jwk" }), {}, /crv P-256 or P-384/],
  ["a compressed point", compressed, {}, /not uncompressed .*-conv_form uncompressed/],
  ["a hybrid point", withPoint((point) => (point[0] = 6)), {}, unreadable],
  [
    "the point at infinity",
    base64(Buffer.from("3019301306072a8648ce3d020106082a8648ce3d03010703020000", "hex")),
    {},
    /not the DER/,
  ],
  ["a point of zeros", withPoint((point) => point.fill(0, 1)), {}, unreadable],
  ["y beyond the field", withPoint((point) => point.fill(0xff, 33)), {}, unreadable],
  [
    "a JWK with a short x",
    { ...es256Jwk, x: es256Jwk.x?.slice(2) },
    {},
    /x of the JWK is damaged|key of the JWK is damaged/,
  ],
  ["a JWK without y", { ...es256Jwk, y: undefined }, {}, /the JWK has no y/],
  [
    "a JWK with padding",
    { ...es256Jwk, y: `${es256Jwk.y ?? ""}=` },
    {},
    /y of the JWK is damaged|key of the JWK is damaged/,
  ],
  ["an EC JWK of ES384 on P-256", { ...es256Jwk, alg: "ES384" }, {}, /another alg than ES256/],
  ["an EC JWK of HS256", { ...es256Jwk, alg: "HS256" }, {}, /another alg than ES256/],
  ["an RSA JWK of PS256", { ...rsaJwk, alg: "PS256" }, pss, /another alg than PS512 or RS256/],
  ["an RSA JWK of RS512", { ...rsaJwk, alg: "RS512" }, pkcs1, /another alg than PS512 or RS256/],
  ["an RSA JWK of alg none", { ...rsaJwk, alg: "none" }, pss, /another alg than/],
  [
    "an RSA JWK of RS256 as rsa-pss",
    { ...rsaJwk, alg: "RS256" },
    pss,
    /is one of rsa-v1_5-sha256, not of rsa-pss/,
  ],
  ["an RSA JWK for encryption", { ...rsaJwk, use: "enc" }, pss, /another use than sig/],
  [
    "an RSA JWK without its alg",
    rsaJwk,
    {},
    /does not say its algorithm; write alg: "rsa-pss-sha512" or "rsa-v1_5/,
  ],
  ["RSA of 2,047 bits", rsa2047, pss, /has 2047 bits/],
  ["RSA of 8,200 bits", { ...rsaJwk, n: longModulus.toString("base64url") }, pss, /has 8200 bits/],
  [
    "RSA with an even modulus",
    { ...rsaJwk, n: withModulus((bytes) => (bytes[255] = 0)) },
    pss,
    /modulus .* is even/,
  ],
  ["RSA with exponent 1", { ...rsaJwk, e: exponent("01") }, pss, /exponent .* must be odd, at least 3/],
  ["RSA with exponent 2", { ...rsaJwk, e: exponent("02") }, pss, /exponent .* must be odd, at least 3/],
  ["RSA with exponent 2^32 + 1", { ...rsaJwk, e: exponent("0100000001") }, pss, /below 2\^32/],
  [
    "RSA with exponent 0",
    { ...rsaJwk, e: exponent("00") },
    pss,
    /e of the JWK is damaged|key of the JWK is damaged|must be odd/,
  ],
  [
    "an RSA JWK whose n has a zero byte first",
    { ...rsaJwk, n: `AA${rsaJwk.n ?? ""}`.slice(0, 344) },
    pss,
    /n of the/,
  ],
  ["an RSA JWK without n", { ...rsaJwk, n: undefined }, pss, /the JWK has no n/],
  ["an RSA JWK with e as a number", { ...rsaJwk, e: 65_537 }, pss, /the JWK has no e/],
  ["an RSA SPKI without NULL", base64(withIdentifier(rsa, "300b06092a864886f70d010101")), pss, /not the DER/],
  [
    "a SPKI with an unused bit",
    base64(Buffer.from(spki(es256).toString("hex").replace("420004", "420104"), "hex")),
    {},
    /not the DER|no public key/,
  ],
  [
    "a byte behind an RSA SPKI",
    base64(Buffer.concat([spki(rsa), Buffer.alloc(1)])),
    pss,
    /bytes after its end/,
  ],
  ["an RSA SPKI that is cut short", base64(spki(rsa).subarray(0, 200)), pss, /is cut short/],
  [
    "an RSA-PSS SPKI whose digests have no NULL",
    base64(withIdentifier(rsa, pssParametersWithoutNull)),
    {},
    /not the DER/,
  ],
  [
    "an RSA-PSS key of SHA-256",
    base64(withIdentifier(rsa, pssParameters.replaceAll("0402030500", "0402010500"))),
    pss,
    /for other parameters than SHA-512/,
  ],
  [
    "an RSA-PSS key of a longer salt",
    base64(withIdentifier(rsa, pssParameters.replace(/40$/, "41"))),
    {},
    /for other parameters than SHA-512/,
  ],
  [
    "an RSA-PSS key as PKCS #1 v1.5",
    base64(withIdentifier(rsa, pssParameters)),
    pkcs1,
    /is one of rsa-pss-sha512, not of/,
  ],
  ["an ssh-rsa line", "ssh-rsa AAAAB3NzaC1yc2E=", pss, /is an SSH key; give PEM/],
  ["a private RSA JWK", rfc9421.rsa, pss, /the JWK is a private key/],
  ["a private EC JWK", rfc9421.p256, {}, /the JWK is a private key/],
  ["an RSA JWK with a prime", { ...rsaJwk, p: rfc9421.rsa.p }, pss, /the JWK is a private key/],
  [
    "an unknown alg",
    es256,
    { alg: "ES256" as SignatureAlgorithm },
    /alg must be one of ed25519, ecdsa-p256-sha256/,
  ],
  [
    "alg as a name of Object.prototype",
    es256,
    { alg: "toString" as SignatureAlgorithm },
    /alg must be one of/,
  ],
  ["a secret without alg", createSecretKey(secret), {}, /is a secret key; .*write alg: "hmac-sha256"/],
  ["a JWK of kty oct without alg", oct, {}, /the JWK is a secret; write alg: "hmac-sha256"/],
  ["a JWK of kty oct that only says HS256", { ...oct, alg: "HS256" }, {}, /the JWK is a secret/],
  ["an RSA JWK with k", { ...rsaJwk, k: oct.k }, pss, /the JWK is a secret/],
  ["a JWK of kty oct as RSA", oct, pss, /the JWK is a secret/],
  ["a JWK of kty oct", oct, hmac, /expected a secret as Buffer.*: Buffer\.from\(jwk\.k, "base64url"\)/],
  ["a public JWK as a secret", es256Jwk, hmac, /expected a secret as Buffer/],
  ["a secret of 31 bytes", secret.subarray(1), hmac, /31 bytes long; expected at least 32/],
  ["a secret of no bytes", Buffer.alloc(0), hmac, /0 bytes long/],
  [
    "a secret as text",
    secret.toString("base64"),
    hmac,
    /is a text, which has several readings; .*Buffer\.from/,
  ],
  ["a secret as a list", [...secret], hmac, /expected a secret as Buffer, Uint8Array or secret/],
  ["undefined as a secret", undefined, hmac, /expected a secret/],
];

describe("importVerificationKey refuses", () => {
  testRefusals(refused, [secret, modulus, spki(es256).subarray(27), spki(es384).subarray(27)]);
});
