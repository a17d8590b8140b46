import { constants, createPublicKey, sign, type KeyObject, type SigningOptions } from "node:crypto";
import { keyError } from "../verification-key.ts";
import type { Algorithm } from "./algorithm.ts";
import { verifyNatively } from "./ed25519.ts";

const leastBits = 2048;
// Beyond these a verification costs milliseconds, and whoever hands in the key decides how many.
const mostBits = 8192;
const mostExponent = 2n ** 32n;

// Its private half was thrown away when it was made; making a key is slow. Whatever is verified under it is refused.
const decoy = {
  kty: "RSA",
  e: "AQAB",
  n:
    "6yWcr742rV_F9HXSR6wgKzrNYDgwuMI7kZaUBB0WSa5LNUGKyHqCQ_k_aL6jwjksGAOdCLI9Dc7_dCjUPqxMDc" +
    "Yy1RgiyOhJcu-pvrMM6tUw4YpbuVTzcgetnskoz5XQht_-Xr3Jgx-f0pTt3o2mxOAa7P_6uSj8_UbLG9855mxD" +
    "FDftGlpD7ANs7tK0dqEfM-xx88eR56yB8TUYbh5YaR17gRAuHui6PKGC_LFSI9l4HJVxZB1iiER9d_GkX9Ks-2" +
    "fr63M6Iy2wVvNNER4lZrOdkIa_vhIezaw8YKXYyPTegaKHRbVpVzUORcGpmfXt2qp83vqfZXSzHaZ4s5OJcw",
} as const;

const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 64 } as const;

/** RFC 9421 section 3.3.1: MGF1 with SHA-512, a salt of 64 bytes. */
export const rsaPssAlgorithm: Algorithm = rsa("sha512", pss);

/** RFC 9421 section 3.3.2. */
export const rsaPkcs1Algorithm: Algorithm = rsa("sha256", { padding: constants.RSA_PKCS1_PADDING });

function rsa(digest: string, options: SigningOptions): Algorithm {
  return {
    vet,
    makeDecoy: () => createPublicKey({ key: decoy, format: "jwk" }),
    isSigningKey: (key) => key.type === "private" && isOfFamily(key, options),
    sign: (key, data) => sign(digest, data, { key, ...options }),
    ...verifyNatively({ digest, options, isSound, placeholder }),
  };
}

// A key of type rsa-pss may be bound to other digests than RFC 9421 has, and never signs by PKCS #1 v1.5 (RFC 4055 section 3.1).
function isOfFamily(
  { asymmetricKeyType, asymmetricKeyDetails }: KeyObject,
  options: SigningOptions,
): boolean {
  const { modulusLength = 0, hashAlgorithm, mgf1HashAlgorithm, saltLength } = asymmetricKeyDetails ?? {};
  if (modulusLength < leastBits || modulusLength > mostBits) return false;
  if (asymmetricKeyType === "rsa") return true;
  return (
    asymmetricKeyType === "rsa-pss" &&
    options.saltLength !== undefined &&
    options.saltLength === (saltLength ?? options.saltLength) &&
    [hashAlgorithm, mgf1HashAlgorithm].every((digest) => digest === undefined || digest === "sha512")
  );
}

/** Vets a key, and returns it as type rsa whatever its SubjectPublicKeyInfo said. */
function vet(given: KeyObject): KeyObject {
  const { modulusLength: bits = 0, publicExponent: e = 0n } = given.asymmetricKeyDetails ?? {};
  if (bits < leastBits || bits > mostBits) {
    throw keyError(`the RSA key has ${bits} bits; expected ${leastBits} to ${mostBits}`);
  }
  if (e % 2n === 0n || e < 3n || e >= mostExponent) {
    throw keyError(
      "the exponent of the RSA key must be odd, at least 3 and below 2^32; make a key with 65537",
    );
  }
  const key = given.asymmetricKeyType === "rsa" ? given : unbound(given);
  if (((modulusOf(key).at(-1) ?? 0) & 1) === 0) {
    throw keyError("the modulus of the RSA key is even; the key is damaged, copy it again");
  }
  return key;
}

const rsaEncryption = Buffer.from("300d06092a864886f70d0101010500", "hex");

/** The key of type rsa-pss as one of type rsa: another AlgorithmIdentifier before the same BIT STRING (RFC 4055 section 1.2). */
function unbound(key: KeyObject): KeyObject {
  if (!isOfFamily(key, pss)) {
    throw keyError("the key is an RSA-PSS key for other parameters than SHA-512 with a salt of 64 bytes");
  }
  const der = key.export({ format: "der", type: "spki" });
  // A modulus of 2,048 bits or more gives the sequence a length in two bytes; the identifier has one in a single byte.
  const bits = der.subarray(6 + (der[5] ?? 0));
  const length = Buffer.alloc(2);
  length.writeUInt16BE(rsaEncryption.length + bits.length);
  const spki = Buffer.concat([Buffer.from([0x30, 0x82]), length, rsaEncryption, bits]);
  return createPublicKey({ key: spki, format: "der", type: "spki" });
}

const moduli = new WeakMap<KeyObject, Buffer>();

function modulusOf(key: KeyObject): Buffer {
  const known = moduli.get(key);
  if (known !== undefined) return known;
  const modulus = Buffer.from(key.export({ format: "jwk" }).n ?? "", "base64url");
  moduli.set(key, modulus);
  return modulus;
}

// RFC 8017 sections 5.2.2, 8.1.2 and 8.2.2, step 1.
function isSound(signature: Uint8Array, key: KeyObject): boolean {
  const modulus = modulusOf(key);
  return signature.length === modulus.length && Buffer.compare(signature, modulus) < 0;
}

function placeholder(key: KeyObject): Uint8Array {
  const bytes = Buffer.alloc(modulusOf(key).length, 0x55);
  // Below every modulus of this length.
  bytes[0] = 0;
  return bytes;
}
