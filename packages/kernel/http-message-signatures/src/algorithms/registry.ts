import type { Algorithm, SignatureAlgorithm } from "./algorithm.ts";
import { ecdsaP256Algorithm, ecdsaP384Algorithm } from "./ecdsa.ts";
import { ed25519Algorithm } from "./ed25519.ts";
import { hmacAlgorithm } from "./hmac.ts";
import { rsaPkcs1Algorithm, rsaPssAlgorithm } from "./rsa.ts";

export const algorithms: Readonly<Record<SignatureAlgorithm, Algorithm>> = {
  ed25519: ed25519Algorithm,
  "ecdsa-p256-sha256": ecdsaP256Algorithm,
  "ecdsa-p384-sha384": ecdsaP384Algorithm,
  "rsa-pss-sha512": rsaPssAlgorithm,
  "rsa-v1_5-sha256": rsaPkcs1Algorithm,
  "hmac-sha256": hmacAlgorithm,
};

/** RFC 9421 section 6.2.2. */
export const signatureAlgorithms: readonly SignatureAlgorithm[] =
  Object.keys(algorithms).filter(isSignatureAlgorithm);

export function isSignatureAlgorithm(value: unknown): value is SignatureAlgorithm {
  return typeof value === "string" && Object.hasOwn(algorithms, value);
}
