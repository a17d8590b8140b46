import { createPrivateKey, KeyObject } from "node:crypto";
import { types } from "node:util";
import type { Jwk, SignatureAlgorithm } from "./algorithms/algorithm.ts";
import { algorithms, isSignatureAlgorithm, signatureAlgorithms } from "./algorithms/registry.ts";
import { readSecret } from "./key-import.ts";
import { withoutByteOrderMark } from "./public-key-input.ts";
import { chooseAlgorithm, narrowByAlg } from "./public-key-jwk.ts";

/** What signs, by the algorithm of its key: a key of this process, or a service that keeps it (KMS, HSM). */
export interface Signer {
  readonly alg: SignatureAlgorithm;
  readonly keyid: string;
  /** Signs the bytes of a signature base and gives the raw signature; for ECDSA r, then s. */
  readonly sign: (data: Uint8Array) => Uint8Array | Promise<Uint8Array>;
}

interface LocalSigner extends Signer {
  readonly sign: (data: Uint8Array) => Uint8Array;
}

/** A private KeyObject, a PKCS#8 PEM or a private JWK; with alg hmac-sha256 the bytes of the secret or a secret KeyObject. */
export type SigningKeyInput = KeyObject | string | Jwk | Uint8Array;

/** Makes a signer. `alg` is needed for a secret, and for RSA unless a JWK or rsa-pss key says it. Throws a TypeError that shows no key. */
export function createSigner(key: SigningKeyInput, keyid: string, alg?: SignatureAlgorithm): LocalSigner {
  if (alg !== undefined && !isSignatureAlgorithm(alg)) {
    throw new TypeError(`sign: option alg must be one of ${signatureAlgorithms.join(", ")}`);
  }
  // A secret is never taken by its looks: whoever gave it may have meant something else by it.
  const object = alg === "hmac-sha256" ? readSecret(key, keyError) : privateKey(key);
  const fitting = signatureAlgorithms.filter((name) => algorithms[name].isSigningKey(object));
  const expected = object.type === "secret" ? "hmac-sha256" : alg;
  if (fitting.length === 0 || expected !== alg) {
    throw keyError(
      "expected a private key on Ed25519, P-256 or P-384, or of RSA with 2,048 to 8,192 bits; " +
        'or a secret of at least 32 bytes with alg: "hmac-sha256"',
    );
  }
  const chosen = chooseAlgorithm(isJwk(key) ? narrow(key, fitting) : fitting, alg, keyError);
  return { alg: chosen, keyid, sign: (data) => algorithms[chosen].sign(object, data) };
}

function privateKey(key: SigningKeyInput): KeyObject {
  try {
    if (key instanceof KeyObject) return key;
    if (typeof key === "string") return createPrivateKey(withoutByteOrderMark(key));
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node checks what it is
    if (isJwk(key)) return createPrivateKey({ key: key as Record<string, string>, format: "jwk" });
  } catch {
    // The reason may quote the key.
  }
  throw keyError(
    "expected a PKCS#8 PEM, a private KeyObject, a private JWK, or with alg hmac-sha256 a secret",
  );
}

function isJwk(key: SigningKeyInput): key is Jwk {
  return typeof key === "object" && key !== null && !(key instanceof KeyObject) && !types.isUint8Array(key);
}

function narrow(jwk: Jwk, fitting: readonly SignatureAlgorithm[]): readonly SignatureAlgorithm[] {
  const { use, key_ops: keyOps } = jwk;
  if (use !== undefined && use !== "sig") throw keyError("the JWK has another use than sig");
  if (keyOps !== undefined && !(Array.isArray(keyOps) && keyOps.includes("sign"))) {
    throw keyError("the JWK has key_ops without sign");
  }
  return narrowByAlg(jwk, fitting, keyError);
}

function keyError(what: string): TypeError {
  return new TypeError(`sign: option key: ${what}`);
}
