import { createHash, createHmac } from "node:crypto";
import {
  mixedOrderKey,
  order8,
  p,
  signUnderMixedOrder,
  signUnderSmallOrder,
  toBytes,
} from "../hand/edwards.mjs";
import { privateJwk, verifierKey } from "../hand/keys.mjs";
import { vector } from "../hand/vector.mjs";

// A key that must not be taken at all. Where anybody can sign under it, the message is signed so.
const refusedKey = (id, shows, key, { signWith = "ed25519", forge } = {}) =>
  vector(`key-${id}`, shows, { signWith, forge, keys: [key], code: "key-refused" });
const smallOrderKey = (id, shows, bytes) =>
  refusedKey(id, shows, ed25519Key(bytes), { forge: (base) => signUnderSmallOrder(base, bytes) });
const byHmac = (secret) => ({
  signWith: "secret",
  forge: (base) => createHmac("sha256", secret).update(base).digest(),
});
const shortSecret = Buffer.alloc(31, 7);
// EMSA-PKCS1-v1_5 (RFC 8017 section 9.2), which is its own signature under an exponent of one.
function encoded(base) {
  const digestInfo = Buffer.from("3031300d060960864801650304020105000420", "hex");
  const end = Buffer.concat([Buffer.alloc(1), digestInfo, createHash("sha256").update(base).digest()]);
  return Buffer.concat([Buffer.from([0, 1]), Buffer.alloc(254 - end.length, 0xff), end]);
}
const ed25519Key = (bytes) =>
  verifierKey("ed25519", { jwk: { x: Buffer.from(bytes).toString("base64url") } });
const flip = (text) => {
  const bytes = Buffer.from(text, "base64url");
  bytes[bytes.length - 1] ^= 1;
  return bytes.toString("base64url");
};
const plusField = (prime) => {
  const number = BigInt(`0x${Buffer.from(privateJwk("p256").x, "base64url").toString("hex")}`) + prime;
  return Buffer.from(number.toString(16).padStart(66, "0"), "hex").toString("base64url");
};

export const theme = "Keys that must not be taken: under some of them anybody can sign";
export const cases = [
  smallOrderKey("small-order", "Ed25519: under a key of small order anybody can sign.", order8),
  smallOrderKey("identity", "Ed25519: under the neutral point anybody can sign.", toBytes(1n)),
  smallOrderKey("all-zero", "Ed25519: 32 zero bytes are a point of small order.", Buffer.alloc(32)),
  smallOrderKey("order-2", "Ed25519: the point of order two.", toBytes(p - 1n)),
  smallOrderKey("not-canonical", "Ed25519: a coordinate beyond the field is refused.", toBytes(p + 1n)),
  refusedKey(
    "mixed-order",
    "Ed25519: a key with a part of small order is refused.",
    ed25519Key(mixedOrderKey()),
    { forge: signUnderMixedOrder },
  ),
  refusedKey("no-point", "Ed25519: bytes that are no point are refused.", ed25519Key(toBytes(2n))),
  refusedKey(
    "short",
    "Ed25519: 31 bytes are no key.",
    ed25519Key(Buffer.from(privateJwk("ed25519").x, "base64url").subarray(1)),
  ),
  refusedKey(
    "padded",
    "A member of a JWK has no padding.",
    verifierKey("ed25519", { jwk: { x: `${privateJwk("ed25519").x}=` } }),
  ),
  refusedKey(
    "private",
    "A private key is no key of a verifier.",
    verifierKey("ed25519", { jwk: { d: privateJwk("ed25519").d } }),
  ),
  refusedKey(
    "x25519",
    "A key for key agreement does not sign.",
    verifierKey("ed25519", { jwk: { crv: "X25519" } }),
  ),
  refusedKey(
    "other-alg",
    "A JWK that says another alg is not what it is listed as.",
    verifierKey("ed25519", { jwk: { alg: "ES256" } }),
  ),
  refusedKey(
    "other-use",
    "A JWK for encryption does not verify.",
    verifierKey("ed25519", { jwk: { use: "enc" } }),
  ),
  refusedKey(
    "other-kid",
    "A JWK with another kid is another key.",
    verifierKey("ed25519", { jwk: { kid: "other" } }),
  ),
  refusedKey(
    "off-curve",
    "P-256: a point off the curve is refused.",
    verifierKey("p256", { jwk: { y: flip(privateJwk("p256").y) } }),
    { signWith: "p256" },
  ),
  refusedKey(
    "beyond-field",
    "P-256: a coordinate beyond the field is refused.",
    verifierKey("p256", { jwk: { x: plusField(2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n) } }),
    { signWith: "p256" },
  ),
  refusedKey(
    "p256-as-p384",
    "A point of P-256 is none of P-384.",
    verifierKey("p256", { algorithm: "ecdsa-p384-sha384", jwk: { crv: "P-384" } }),
    { signWith: "p256" },
  ),
  refusedKey(
    "off-curve-p384",
    "P-384: a point off the curve is refused.",
    verifierKey("p384", { jwk: { x: flip(privateJwk("p384").x) } }),
    { signWith: "p384" },
  ),
  refusedKey("rsa-1024", "RSA: 1,024 bits are too few.", verifierKey("rsa1024"), { signWith: "rsa1024" }),
  refusedKey(
    "rsa-exponent-1",
    "RSA: an exponent of one lets anybody sign.",
    verifierKey("rsa", { jwk: { e: "AQ" } }),
    { signWith: "rsa", forge: encoded },
  ),
  refusedKey(
    "rsa-exponent-even",
    "RSA: an even exponent is none.",
    verifierKey("rsa", { jwk: { e: "AQAA" } }),
    { signWith: "rsa" },
  ),
  refusedKey(
    "rsa-as-ed25519",
    "An RSA key does not verify ed25519.",
    verifierKey("rsa", { algorithm: "ed25519" }),
    { signWith: "rsa" },
  ),
  refusedKey(
    "hmac-short",
    "A secret of fewer than 32 bytes is refused.",
    verifierKey("secret", { jwk: { k: shortSecret.toString("base64url") } }),
    byHmac(shortSecret),
  ),
  refusedKey(
    "hmac-public",
    "A public key is no secret: everybody could sign.",
    verifierKey("ed25519", { algorithm: "hmac-sha256" }),
    byHmac(Buffer.from(privateJwk("ed25519").x, "base64url")),
  ),
  refusedKey(
    "secret-as-ed25519",
    "A secret does not verify ed25519.",
    verifierKey("secret", { algorithm: "ed25519" }),
    { signWith: "secret" },
  ),
];
