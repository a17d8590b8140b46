import { createPrivateKey, KeyObject } from "node:crypto";
import { types } from "node:util";
import type { Jwk, SignatureAlgorithm } from "./algorithms/algorithm.ts";
import { algorithms, isSignatureAlgorithm, signatureAlgorithms } from "./algorithms/registry.ts";
import { readSecret } from "./key-import.ts";
import { narrowByAlg } from "./public-key-jwk.ts";

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

/**
 * A key to sign with: a private KeyObject, a PKCS#8 PEM or a private JWK; for hmac-sha256, with that `alg`, the bytes of the secret
 * or a secret KeyObject.
 */
export type SigningKeyInput = KeyObject | string | Jwk | Uint8Array;

/** A vetted key to sign with, and the one algorithm that it signs by. */
export interface SigningKey {
  readonly alg: SignatureAlgorithm;
  readonly sign: (data: Uint8Array) => Uint8Array;
}

/**
 * Vets a key to sign with. `alg` is needed for RSA that does not say it, as a JWK or a key of type rsa-pss does, and for a secret.
 * Throws a TypeError that shows nothing of the key.
 */
export function signingKey(key: SigningKeyInput, alg?: SignatureAlgorithm): SigningKey {
  if (alg !== undefined && !isSignatureAlgorithm(alg)) {
    throw new TypeError(`sign: option alg must be one of ${signatureAlgorithms.join(", ")}`);
  }
  if (alg === "hmac-sha256") return secretKey(key);
  const object = privateKey(key);
  const fitting = signatureAlgorithms.filter((name) => algorithms[name].isSigningKey(object));
  if (fitting.length === 0 || object.type !== "private") {
    throw keyError(
      'must be a private key on Ed25519, P-256 or P-384, or of RSA with 2,048 to 8,192 bits; a secret needs alg: "hmac-sha256"',
    );
  }
  return bind(object, choose(isJwk(key) ? narrow(key, fitting) : fitting, alg));
}

function bind(key: KeyObject, alg: SignatureAlgorithm): SigningKey {
  return { alg, sign: (data) => algorithms[alg].sign(key, data) };
}

// A secret is never taken by its looks: whoever gave it may have meant something else by it.
function secretKey(key: SigningKeyInput): SigningKey {
  const object = readSecret(key, inputError);
  if (algorithms["hmac-sha256"].isSigningKey(object)) return bind(object, "hmac-sha256");
  throw keyError("must be a secret of at least 32 bytes");
}

function choose(
  fitting: readonly SignatureAlgorithm[],
  alg: SignatureAlgorithm | undefined,
): SignatureAlgorithm {
  const [only] = fitting;
  if (alg !== undefined) {
    if (fitting.includes(alg)) return alg;
    throw keyError(`is one of ${fitting.join(" or ")}, not of option alg, ${alg}`);
  }
  if (only !== undefined && fitting.length === 1) return only;
  throw new TypeError(`sign: option alg must be given for this key: ${fitting.join(" or ")}`);
}

function privateKey(key: SigningKeyInput): KeyObject {
  try {
    if (key instanceof KeyObject) return key;
    if (typeof key === "string") return createPrivateKey(key);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node checks what it is
    if (isJwk(key)) return createPrivateKey({ key: key as Record<string, string>, format: "jwk" });
  } catch {
    // The reason may quote the key.
  }
  throw keyError(
    "must be a PKCS#8 PEM, a private KeyObject, a private JWK, or with alg hmac-sha256 a secret",
  );
}

function isJwk(key: SigningKeyInput): key is Jwk {
  return typeof key === "object" && key !== null && !(key instanceof KeyObject) && !types.isUint8Array(key);
}

function narrow(jwk: Jwk, fitting: readonly SignatureAlgorithm[]): readonly SignatureAlgorithm[] {
  const { use, key_ops: keyOps } = jwk;
  if (use !== undefined && use !== "sig") throw keyError("is a JWK with another use than sig");
  if (keyOps !== undefined && !(Array.isArray(keyOps) && keyOps.includes("sign"))) {
    throw keyError("is a JWK whose key_ops have no sign");
  }
  return narrowByAlg(jwk, fitting, inputError);
}

function keyError(what: string): TypeError {
  return new TypeError(`sign: option key ${what}`);
}

function inputError(what: string): TypeError {
  return new TypeError(`sign: option key: ${what}`);
}
