import { createPrivateKey, type KeyObject } from "node:crypto";
import type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
import { algorithms } from "./algorithms/registry.ts";

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

/** Makes a signer of a private key: a KeyObject, or PKCS#8 PEM. Throws a TypeError. */
export function createSigner(key: KeyObject | string, keyid: string): LocalSigner {
  const object = privateKey(key);
  return { alg: "ed25519", keyid, sign: (data) => algorithms.ed25519.sign(object, data) };
}

function privateKey(key: KeyObject | string): KeyObject {
  let object: KeyObject;
  try {
    object = typeof key === "string" ? createPrivateKey(key) : key;
  } catch {
    throw new TypeError("sign: option key must be a PKCS#8 PEM or a private KeyObject");
  }
  if (object.type !== "private" || object.asymmetricKeyType !== "ed25519") {
    throw new TypeError("sign: option key must be an Ed25519 private key");
  }
  return object;
}
