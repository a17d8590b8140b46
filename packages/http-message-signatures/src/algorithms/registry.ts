import {
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  randomBytes,
  type KeyObject,
} from "node:crypto";
import type { Algorithm, SignatureAlgorithm } from "./algorithm.ts";
import { ecdsaP256Algorithm, ecdsaP384Algorithm } from "./ecdsa.ts";
import { ed25519Algorithm } from "./ed25519.ts";
import { hmacAlgorithm } from "./hmac.ts";
import { rsaPkcs1Algorithm, rsaPssAlgorithm } from "./rsa.ts";

/** Every algorithm by its name. */
export const algorithms: Readonly<Record<SignatureAlgorithm, Algorithm>> = {
  ed25519: ed25519Algorithm,
  "ecdsa-p256-sha256": ecdsaP256Algorithm,
  "ecdsa-p384-sha384": ecdsaP384Algorithm,
  "rsa-pss-sha512": rsaPssAlgorithm,
  "rsa-v1_5-sha256": rsaPkcs1Algorithm,
  "hmac-sha256": hmacAlgorithm,
};

/** The names of all algorithms (RFC 9421 section 6.2.2). */
export const signatureAlgorithms: readonly SignatureAlgorithm[] =
  Object.keys(algorithms).filter(isSignatureAlgorithm);

export function isSignatureAlgorithm(value: unknown): value is SignatureAlgorithm {
  return typeof value === "string" && Object.hasOwn(algorithms, value);
}

// A decoy: a public key whose private half was thrown away when it was made. To make one takes a large part of a second. What is
// verified under it is refused whatever comes out.
const rsaDecoy = {
  kty: "RSA",
  e: "AQAB",
  n:
    "6yWcr742rV_F9HXSR6wgKzrNYDgwuMI7kZaUBB0WSa5LNUGKyHqCQ_k_aL6jwjksGAOdCLI9Dc7_dCjUPqxMDc" +
    "Yy1RgiyOhJcu-pvrMM6tUw4YpbuVTzcgetnskoz5XQht_-Xr3Jgx-f0pTt3o2mxOAa7P_6uSj8_UbLG9855mxD" +
    "FDftGlpD7ANs7tK0dqEfM-xx88eR56yB8TUYbh5YaR17gRAuHui6PKGC_LFSI9l4HJVxZB1iiER9d_GkX9Ks-2" +
    "fr63M6Iy2wVvNNER4lZrOdkIa_vhIezaw8YKXYyPTegaKHRbVpVzUORcGpmfXt2qp83vqfZXSzHaZ4s5OJcw",
} as const;

const makeDecoy: Readonly<Record<SignatureAlgorithm, () => KeyObject>> = {
  ed25519: () => generateKeyPairSync("ed25519").publicKey,
  "ecdsa-p256-sha256": () => generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey,
  "ecdsa-p384-sha384": () => generateKeyPairSync("ec", { namedCurve: "P-384" }).publicKey,
  "rsa-pss-sha512": () => createPublicKey({ key: rsaDecoy, format: "jwk" }),
  "rsa-v1_5-sha256": () => createPublicKey({ key: rsaDecoy, format: "jwk" }),
  "hmac-sha256": () => createSecretKey(randomBytes(32)),
};
const decoys = new Map<SignatureAlgorithm, KeyObject>();

/** A key of nobody, to verify under where the keyid is unknown. Made at the first call, and kept. */
export function decoyKey(alg: SignatureAlgorithm): KeyObject {
  const made = decoys.get(alg) ?? makeDecoy[alg]();
  decoys.set(alg, made);
  return made;
}
