import { createPublicKey, createSecretKey, generateKeyPairSync, KeyObject, webcrypto } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { importVerificationKey } from "@countersign/http-message-signatures";
import { isVerificationKey } from "@countersign/http-message-signatures/internal";
import { rawPublicKey } from "../src/algorithms/ed25519.ts";
import { privateKey, privatePem, publicKey } from "./hand-signer.ts";
import { testRefusals, type PublicKeyInput } from "./key-refusals.ts";

const pem = publicKey.export({ format: "pem", type: "spki" }).toString();
const der = publicKey.export({ format: "der", type: "spki" });
const raw = der.subarray(12);
const jwk = publicKey.export({ format: "jwk" });
const privateDer = privateKey.export({ format: "der", type: "pkcs8" });
const seed = privateDer.subarray(16);
const encryptedPem = privateKey
  .export({ format: "pem", type: "pkcs8", cipher: "aes-256-cbc", passphrase: "test-secret" })
  .toString();
const rsa = generateKeyPairSync("rsa", { modulusLength: 1024 });
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
const x25519 = generateKeyPairSync("x25519").publicKey;
// The bytes of a good Ed25519 key under the OID of X25519: nothing but the type is wrong.
const asX25519 = createPublicKey({
  key: Buffer.concat([Buffer.from("302a300506032b656e032100", "hex"), raw]),
  format: "der",
  type: "spki",
});
const other = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });

const ssh = (bytes: Buffer, type = "ssh-ed25519"): string => {
  const field = (part: Buffer): Buffer => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(part.length);
    return Buffer.concat([length, part]);
  };
  return `ssh-ed25519 ${Buffer.concat([field(Buffer.from(type)), field(bytes)]).toString("base64")}`;
};
const block = (label: string, bytes: Buffer): string =>
  `-----BEGIN ${label}-----\n${bytes.toString("base64")}\n-----END ${label}-----\n`;
const escaped = pem.trimEnd().replaceAll("\n", String.raw`\n`);

describe("importVerificationKey takes", () => {
  test.each<[string, unknown]>([
    ["an SPKI PEM", pem],
    ["an SPKI PEM with CRLF and empty lines around it", `\n${pem.replaceAll("\n", "\r\n")}\n`],
    ["the raw bytes in base64", raw.toString("base64")],
    ["a KeyObject", publicKey],
    ["a bare JWK", jwk],
    ["a JWK that says everything", { ...jwk, alg: "EdDSA", use: "sig", key_ops: ["verify"], kid: "k1" }],
    ["a JWK of RFC 9864", { ...jwk, alg: "Ed25519" }],
    ["a JWK with members of others", { ...jwk, "x-owner": "lending service" }],
    ["a PEM with literal \\n, as environment variables hold it", escaped],
    ["a PEM with literal \\r\\n", pem.replaceAll("\n", String.raw`\r\n`)],
    ["a PEM in one line", pem.replaceAll("\n", " ")],
    ["a PEM with a byte order mark", `\ufeff${pem}`],
    ["a PEM as bytes", Buffer.from(pem)],
    ["a PEM with literal \\n as bytes", Buffer.from(escaped)],
    ["the SPKI in base64, a PEM without its armour", der.toString("base64")],
    ["the SPKI in base64url", der.toString("base64url")],
    ["the 32 bytes in base64 with the line feed of a file", `${raw.toString("base64")}\n`],
    ["the 32 bytes in base64url", raw.toString("base64url")],
    ["a part of a larger buffer", Buffer.from(pem + pem).subarray(pem.length)],
    ["a PEM as bytes with a byte order mark", Buffer.from(`\ufeff${pem}`)],
    ["a JWK as bytes of JSON in UTF-8", Buffer.from(JSON.stringify({ ...jwk, "x-owner": "M\u00fcller" }))],
    ["base64 as bytes", Buffer.from(raw.toString("base64"))],
    ["a JWK as JSON text", JSON.stringify(jwk)],
    ["a JWK as indented JSON text", `\n${JSON.stringify(jwk, undefined, 2)}\n`],
    ["a JWK as bytes of JSON", Buffer.from(JSON.stringify(jwk))],
    ["a JWK from which the private member was taken", { ...jwk, d: undefined }],
    ["a JWK Set with one key", { keys: [jwk] }],
    ["a JWK Set as JSON text", JSON.stringify({ keys: [jwk] })],
    [
      "the key of the keyid in a JWK Set",
      {
        keys: [
          { ...other, kid: "k2" },
          { ...jwk, kid: "k1" },
        ],
      },
    ],
    [
      "the one key of a JWK Set that says its algorithm and is of ours",
      { keys: [rsa.publicKey.export({ format: "jwk" }), x25519.export({ format: "jwk" }), jwk] },
    ],
  ])("%s", (_title, input) => {
    const key = importVerificationKey("k1", input as PublicKeyInput);
    expect(key.publicKey.equals(publicKey)).toBe(true);
    expect(Buffer.from(rawPublicKey(key.publicKey))).toEqual(raw);
    expect(key).toMatchObject({ keyid: "k1", alg: "ed25519", retired: false });
    expect(isVerificationKey(key)).toBe(true);
    expect(Object.isFrozen(key)).toBe(true);
  });
});

const pkcs1 = rsa.privateKey.export({ format: "der", type: "pkcs1" });
const sec1 = ec.privateKey.export({ format: "der", type: "sec1" });
const rsaSpki = rsa.publicKey.export({ format: "der", type: "spki" });

const anyWords = /./;
const refused: readonly (readonly [title: string, input: unknown, message: RegExp])[] = [
  ["the SPKI in hex", der.toString("hex"), /in hex; give base64/],
  ["the SPKI as bytes", der, /binary; give it as text, such as bytes\.toString/],
  ["the 32 bytes in base64 without padding", raw.toString("base64").replace("=", ""), /wrongly padded/],
  ["the 32 bytes in padded base64url", `${raw.toString("base64url")}=`, /wrongly padded|two alphabets/],
  ["the 32 bytes in hex", raw.toString("hex"), /in hex; give base64/],
  ["the 32 bytes in upper-case hex", raw.toString("hex").toUpperCase(), /in hex; give base64/],
  ["hex as bytes", Buffer.from(raw.toString("hex")), /in hex; give base64/],
  ["a Buffer of the 32 bytes", raw, /binary; give it as text/],
  ["a line of an SSH public key", ssh(raw), /is an SSH key; .* base64 -d \| tail -c 32 \| base64/],
  ["a private PEM", privatePem, /the PEM is a private key.*openssl pkey .*-pubout/],
  ["a private PEM with literal \\n", privatePem.replaceAll("\n", String.raw`\n`), /the PEM is a private key/],
  ["a private PEM as bytes", Buffer.from(privatePem), /the PEM is a private key/],
  ["an encrypted private PEM", encryptedPem, /the PEM is a private key/],
  ["an OpenSSH private key", block("OPENSSH PRIVATE KEY", seed), /the PEM is a private key/],
  ["a private key under the label of a public one", block("PUBLIC KEY", privateDer), /is a private key/],
  ["a private DER in base64", privateDer.toString("base64"), /the key in base64 is a private key/],
  ["a private DER in hex", privateDer.toString("hex"), /in hex; give base64/],
  ["a private DER", privateDer, /binary; give it as text/],
  ["an RSA private DER", pkcs1.toString("base64"), /is a private key/],
  ["an EC private DER", sec1.toString("base64"), /is a private key/],
  ["seed and public key", Buffer.concat([seed, raw]).toString("base64"), /private key beside its public/],
  ["a private JWK as text", JSON.stringify(privateKey.export({ format: "jwk" })), /the JWK is a private key/],
  [
    "a JWK Set in which another key that may be meant is private",
    { keys: [jwk, privateKey.export({ format: "jwk" })] },
    /a key of the JWK Set is a private key/,
  ],
  ["a certificate", block("CERTIFICATE", der), /is a certificate; .*openssl x509 .*-pubkey/],
  ["an RSA PEM", block("RSA PUBLIC KEY", rsaSpki), /RSA key as PKCS #1; .*openssl rsa -RSAPublicKey_in/],
  ["an RSA SPKI in base64", rsaSpki.toString("base64"), /does not say its algorithm; write alg: "rsa-pss/],
  ["an RSA SPKI", rsaSpki.toString("base64url"), /write alg: "rsa-pss-sha512" or "rsa-v1_5-sha256"/],
  [
    "an X25519 SPKI",
    x25519.export({ format: "der", type: "spki" }).toString("base64"),
    /of type x25519; expected an Ed25519, P-256/,
  ],
  ["a PGP block", block("PGP PUBLIC KEY BLOCK", der), /another kind; expected one block "PUBLIC KEY"/],
  ["two PEM blocks", pem + pem, /holds several PEM blocks; give the one/],
  ["a PEM with text behind it", `${pem}# the key of the service`, /more than the PEM block/],
  ["a PEM with text before it", `Bag Attributes\n${pem}`, /more than the PEM block/],
  ["a PEM with a NUL behind it", `${pem}\0`, /holds control characters/],
  ["a PEM with vertical tabs", pem.replaceAll("\n", "\v"), /holds control characters/],
  ["bytes in a string", der.toString("latin1"), /holds control characters; give it as text/],
  ["a PEM in quotation marks", `"${escaped}"`, /quotation marks; write it without them/],
  ["the first line of a PEM", pem.split("\n")[0], /no END line; copy the whole block/],
  [
    "a PEM with a byte behind the DER",
    block("PUBLIC KEY", Buffer.concat([der, seed])),
    /bytes after its end/,
  ],
  [
    "a DER with a byte behind it",
    Buffer.concat([der, Buffer.alloc(1)]).toString("base64"),
    /bytes after its end/,
  ],
  ["base64 with a byte behind the DER", Buffer.concat([der, raw]).toString("base64"), /bytes after its end/],
  ["a PEM that is cut short", block("PUBLIC KEY", der.subarray(0, 40)), /is cut short/],
  ["a PEM with bad padding", pem.replace("=", ""), /cut short or damaged; copy the whole block/],
  ["a PEM of the 32 bytes alone", block("PUBLIC KEY", raw), /holds no public key \(SPKI\)/],
  [
    "an Ed25519 key with parameters, which is not its DER",
    withNullParameters().toString("base64"),
    /not the DER|no public key/,
  ],
  ["no text", "", /empty; is an environment variable or a file not set\?/],
  ["white space", " \n", /empty/],
  ["no bytes", Buffer.alloc(0), /the key is empty/],
  ["base64 in quotation marks", `"${raw.toString("base64")}"`, /quotation marks; write it without them/],
  ["31 bytes", raw.subarray(1).toString("base64"), /neither 32 bytes nor an SPKI/],
  ["33 bytes", Buffer.concat([raw, raw]).subarray(0, 33).toString("base64"), /neither 32 bytes nor an SPKI/],
  ["hex with 0x", `0x${raw.toString("hex")}`, /in hex; give base64/],
  ["hex with colons", raw.toString("hex").replace(/..(?!$)/g, "$&:"), /in hex; give base64/],
  ["base64 with half its padding gone", der.toString("base64").replace(/=*$/, "=="), /wrongly padded/],
  [
    "both alphabets of base64",
    `+${raw.toString("base64url").slice(1, -1)}-`,
    /looks like base64, but is neither/,
  ],
  ["base64 in two lines", raw.toString("base64").replace(/^.{20}/, "$&\n"), /in no known form/],
  ["an ssh-rsa line", "ssh-rsa AAAAB3NzaC1yc2E=", /is an SSH key; give PEM/],
  ["a line of authorized_keys with options", `no-pty ${ssh(raw)}`, /is an SSH key; give PEM/],
  [
    "a control character in the comment of an SSH line",
    `${ssh(raw)} a\0b`,
    /holds control characters; give it as text/,
  ],
  ["an SSH2 file", "---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n---- END", /is an SSH key; give PEM/],
  ["the path of a file", "./keys/service.public.pem", /path of a file; give its content: readFileSync/],
  ["JSON that is cut short", JSON.stringify(jwk).slice(0, -4), /text looks like JSON, but cannot be parsed/],
  ["a list of JWKs as text", JSON.stringify([jwk]), /is a list; give one key/],
  ["a list of JWKs", [jwk], /is a list; give one key/],
  ["a JWK Set without keys", { keys: [] }, /0 of 0 keys that fit .*give that JWK itself/],
  ["a JWK Set with two keys that fit", { keys: [jwk, other] }, /2 of 2 keys that fit/],
  [
    "a JWK Set with keys of two algorithms",
    { keys: [jwk, ec.publicKey.export({ format: "jwk" })] },
    /2 of 2 keys that fit .* or alg/,
  ],
  ["a JWK Set with one key twice", { keys: [jwk, jwk] }, /2 of 2 keys that fit/],
  ["a JWK Set of other keyids", { keys: [{ ...jwk, kid: "k2" }, null] }, /0 of 2 keys that fit/],
  ["a JWK that is a JWK Set as well", { ...jwk, keys: [jwk] }, /neither a JWK nor a JWK Set/],
  ["keys that are no list", { keys: jwk }, /neither a JWK nor a JWK Set/],
  ["a promise", Promise.resolve(pem), /a promise; await it first/],
  ["an ArrayBuffer", new Uint8Array(raw).buffer, /binary, but no Uint8Array; give it as text/],
  ["16-bit numbers", new Uint16Array(16), /binary, but no Uint8Array; give it as text/],
  [
    "32 bytes that are no point",
    Buffer.from(offCurve(), "hex").toString("base64"),
    /no canonical Ed25519 point: damaged, or those of a/,
  ],
  ["a private PEM behind a public one", `${pem}${privatePem}`, anyWords],
  ["a PEM that holds nothing readable", pem.replace("MCow", "AAAA"), anyWords],
  ["a private KeyObject", privateKey, anyWords],
  ["a secret KeyObject", createSecretKey(raw), anyWords],
  ["an X25519 KeyObject", asX25519, anyWords],
  ["base64 with non-zero pad bits", raw.toString("base64").replace(/.=$/, "t="), anyWords],
  ["an array", [...raw], anyWords],
  ["null", null, anyWords],
  ["undefined", undefined, anyWords],
  ["a number", 1, anyWords],
  ["a JWK of another kty", { ...jwk, kty: "EC" }, anyWords],
  ["a JWK without curve", { ...jwk, crv: undefined }, anyWords],
  ["a JWK with alg none", { ...jwk, alg: "none" }, anyWords],
  ["a JWK for signing", { ...jwk, key_ops: ["sign"] }, anyWords],
  ["a JWK for signing and verifying", { ...jwk, key_ops: ["verify", "sign"] }, anyWords],
  ["a JWK without any operation", { ...jwk, key_ops: [] }, anyWords],
  ["a JWK whose key_ops are no list", { ...jwk, key_ops: "verify" }, anyWords],
  ["a JWK without x", { ...jwk, x: undefined }, anyWords],
  ["a JWK whose x is no text", { ...jwk, x: 1 }, anyWords],
];

describe("importVerificationKey says what it got, and what to write instead, for", () => {
  testRefusals(
    refused.map(([title, input, message]) => [title, input, {}, message]),
    [raw, seed, der, privateDer],
  );

  test("a CryptoKey, and takes the KeyObject of one", async () => {
    const format = { name: "Ed25519" };
    const cryptoKey = await webcrypto.subtle.importKey("raw", raw, format, true, ["verify"]);
    expect(() => importVerificationKey("k1", cryptoKey as never)).toThrow(/write KeyObject\.from\(key\)/);
    expect(importVerificationKey("k1", KeyObject.from(cryptoKey)).publicKey.equals(publicKey)).toBe(true);
  });
});

test.each<[string, unknown]>([
  ["empty", ""],
  ["too long", "k".repeat(257)],
  ["outside printable ASCII", "k\u00e9"],
  ["with a line feed", "k1\n"],
  ["no string", 1],
])("importVerificationKey throws on a keyid that is %s", (_title, keyid) => {
  expect(() => importVerificationKey(keyid as string, publicKey)).toThrow(/the keyid must be 1 to 256/);
});

test("isVerificationKey knows what importVerificationKey made, and nothing that looks like it", () => {
  const key = importVerificationKey("k1", publicKey);
  for (const value of [{ ...key }, Object.create(key) as unknown, publicKey, "k1", null, undefined]) {
    expect(isVerificationKey(value)).toBe(false);
  }
});

test("importVerificationKey takes linear time on long texts", () => {
  const texts = [
    `-----BEGIN PUBLIC KEY-----${" ".repeat(1_000_000)}x`,
    "a".repeat(1_000_000),
    "ab:".repeat(300_000),
    `ssh-ed25519 ${"A".repeat(1_000_000)}!`,
    `{${" ".repeat(1_000_000)}`,
  ];
  for (const text of texts) expect(() => importVerificationKey("k1", text)).toThrow(TypeError);
});

/** The same key with a NULL behind the OID, which RFC 8410 section 3 forbids. */
function withNullParameters(): Buffer {
  return Buffer.concat([Buffer.from("302c300706032b65700500032100", "hex"), raw]);
}

/** y = 2: x squared would be 3 / (4 d + 1), which has no root. */
function offCurve(): string {
  return `02${"00".repeat(31)}`;
}
