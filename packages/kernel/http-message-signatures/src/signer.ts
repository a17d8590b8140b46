import type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
import { signingKey, type SigningKeyInput } from "./algorithms/signing-key.ts";

/** What signs, by the algorithm of its key: a key of this process, or a service that keeps it (KMS, HSM). */
export interface Signer {
  readonly alg: SignatureAlgorithm;
  readonly keyid: string;
  /** Signs the bytes of a signature base and gives the raw signature, for ECDSA r and s one behind the other. */
  readonly sign: (data: Uint8Array) => Uint8Array | Promise<Uint8Array>;
}

/** A signer in this process. */
export interface LocalSigner extends Signer {
  readonly sign: (data: Uint8Array) => Uint8Array;
}

/**
 * Makes a signer of a key in this process. `alg` is needed for RSA that does not say it, and for a secret. Throws a TypeError that shows
 * nothing of the key.
 */
export function createSigner(key: SigningKeyInput, keyid: string, alg?: SignatureAlgorithm): LocalSigner {
  return { ...signingKey(key, alg), keyid };
}
