import type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
import { algorithms, isSignatureAlgorithm, signatureAlgorithms } from "./algorithms/registry.ts";
import { bothValidities, statedValidity } from "./jwk-validity.ts";
import { maxKeyidLength } from "./limits.ts";
import { contentOf, readPublicKey, type PublicKeyInput } from "./public-key-input.ts";
import { algorithmOf } from "./public-key-jwk.ts";
import { readSecret } from "./secret-key-input.ts";
import {
  asVetted,
  keyError,
  readKeyValidity,
  type KeyValidity,
  type VerificationKey,
} from "./verification-key.ts";

/** Algorithm and validity of a key. */
export interface VerificationKeyOptions extends KeyValidity {
  /**
   * Default what the key itself says. RSA needs it, unless a JWK has an `alg`, and a secret is taken by `hmac-sha256` alone. One that
   * is not the key's is refused.
   */
  readonly alg?: SignatureAlgorithm | undefined;
}

const keyidPattern = /^[\x20-\x7e]+$/;

/**
 * Imports and vets a key, with the validity that is given and the one that a JWK states itself, whichever is narrower. Taken are:
 * Ed25519, canonical (RFC 8032 section 5.1.3) and of prime order; a point on P-256 or P-384, uncompressed; RSA of 2,048 to 8,192 bits
 * with an odd exponent of at least 3; a secret of at least 32 bytes. So no signature verifies under it but its owner's. Throws a
 * TypeError that says what the key looks like and what to write instead; never shows it.
 */
export function importVerificationKey(
  keyid: string,
  key: PublicKeyInput,
  options: VerificationKeyOptions = {},
): VerificationKey {
  if (typeof keyid !== "string" || keyid.length > maxKeyidLength || !keyidPattern.test(keyid)) {
    throw keyError(`the keyid must be 1 to ${maxKeyidLength} printable ASCII characters`);
  }
  const { alg: wanted, ...validity } = options;
  const given = readKeyValidity(validity);
  if (readAlg(wanted) === "hmac-sha256") {
    const publicKey = algorithms["hmac-sha256"].vet(readSecret(key, keyError));
    return asVetted({ keyid, alg: "hmac-sha256", publicKey, ...given });
  }
  const content = contentOf(key);
  const read = readPublicKey(content, { keyid, alg: wanted });
  const alg = algorithmOf(read, wanted);
  // Read again when it is whole: two halves may contradict each other.
  const whole = readKeyValidity(bothValidities(given, statedValidity(content, keyid)));
  return asVetted({ keyid, alg, publicKey: algorithms[alg].vet(read.key), ...whole });
}

function readAlg(alg: SignatureAlgorithm | undefined): SignatureAlgorithm | undefined {
  if (alg === undefined || isSignatureAlgorithm(alg)) return alg;
  throw keyError(`alg must be one of ${signatureAlgorithms.join(", ")}`);
}
