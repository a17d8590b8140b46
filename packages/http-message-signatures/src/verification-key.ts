import { createPublicKey, type JsonWebKey, KeyObject } from "node:crypto";
import { ed25519 } from "@noble/curves/ed25519.js";
import { maxKeyidLength } from "./limits.ts";

/** An Ed25519 public key that was vetted by {@link importVerificationKey}. */
export interface VerificationKey {
  readonly keyid: string;
  readonly alg: "ed25519";
  readonly publicKey: KeyObject;
  /** Signatures with an earlier `created` are refused. Unix seconds. */
  readonly notBefore?: number | undefined;
  /** Signatures with a later `created` are refused. Unix seconds. */
  readonly notAfter?: number | undefined;
  /** A retired key verifies nothing; unlike an unknown one it is named in the log. */
  readonly retired?: boolean | undefined;
}

/** An Ed25519 public key: SPKI PEM, the raw 32 bytes in padded base64, a JWK (RFC 8037), or a KeyObject. */
export type PublicKeyInput = string | JsonWebKey | KeyObject;

/** Validity of a key, in Unix seconds. */
export interface VerificationKeyOptions {
  readonly notBefore?: number | undefined;
  readonly notAfter?: number | undefined;
  readonly retired?: boolean | undefined;
}

const vetted = new WeakSet();
const keyidPattern = /^[\x20-\x7e]+$/;
const spkiPrefix = Buffer.from("302a300506032b6570032100", "hex");

/**
 * Imports and vets a public key: Ed25519 only, canonical encoding (RFC 8032 section 5.1.3), of prime order, so that no
 * signature verifies under it but its owner's. Throws a TypeError that says what is wrong; never shows the key.
 */
export function importVerificationKey(
  keyid: string,
  key: PublicKeyInput,
  options: VerificationKeyOptions = {},
): VerificationKey {
  if (typeof keyid !== "string" || keyid.length > maxKeyidLength || !keyidPattern.test(keyid)) {
    throw keyError(`the keyid must be 1 to ${maxKeyidLength} printable ASCII characters`);
  }
  const { notBefore, notAfter, retired } = validity(options);
  const bytes = publicKeyBytes(key, keyid);
  assertPrimeOrder(bytes);
  const publicKey = createPublicKey({ key: Buffer.concat([spkiPrefix, bytes]), format: "der", type: "spki" });
  const record: VerificationKey = Object.freeze({
    keyid,
    alg: "ed25519",
    publicKey,
    notBefore,
    notAfter,
    retired,
  });
  vetted.add(record);
  return record;
}

/** Whether `value` came from {@link importVerificationKey}; a look-alike object was never vetted. */
export function isVerificationKey(value: unknown): value is VerificationKey {
  return typeof value === "object" && value !== null && vetted.has(value);
}

/** The raw 32 bytes of a vetted key. */
export function rawPublicKey(key: VerificationKey): Uint8Array {
  return key.publicKey.export({ format: "der", type: "spki" }).subarray(spkiPrefix.length);
}

function publicKeyBytes(key: PublicKeyInput, keyid: string): Uint8Array {
  if (key instanceof KeyObject) return keyObjectBytes(key);
  if (typeof key === "string") return key.includes("-----BEGIN") ? pemBytes(key) : base64Bytes(key, "base64");
  if (typeof key === "object" && key !== null) return jwkBytes(key, keyid);
  throw keyError("expected an SPKI PEM, 32 bytes in base64, a JWK or a KeyObject");
}

function keyObjectBytes(key: KeyObject): Uint8Array {
  if (key.type !== "public") throw keyError(`expected a public key, got a ${key.type} KeyObject`);
  if (key.asymmetricKeyType !== "ed25519") throw keyError("expected an Ed25519 key");
  return key.export({ format: "der", type: "spki" }).subarray(spkiPrefix.length);
}

function pemBytes(pem: string): Uint8Array {
  // createPublicKey would quietly derive the public half of a private key that has no business here.
  if (!/^\s*-----BEGIN PUBLIC KEY-----[A-Za-z0-9+/=\s]+-----END PUBLIC KEY-----\s*$/.test(pem)) {
    throw keyError('expected one PEM block "PUBLIC KEY" (SPKI)');
  }
  let key: KeyObject;
  try {
    key = createPublicKey(pem);
  } catch {
    throw keyError("the PEM holds no readable public key");
  }
  return keyObjectBytes(key);
}

// RFC 8037 section 2, RFC 7517 section 4. Every member that is there must agree.
function jwkBytes(jwk: JsonWebKey, keyid: string): Uint8Array {
  const { kty, crv, alg, use, key_ops: keyOps, kid, x, d } = jwk;
  if (d !== undefined) throw keyError("the JWK holds a private key; give the public key alone");
  if (kty !== "OKP" || crv !== "Ed25519") throw keyError("the JWK must have kty OKP and crv Ed25519");
  if (alg !== undefined && alg !== "EdDSA" && alg !== "Ed25519")
    throw keyError("the JWK has another alg than EdDSA or Ed25519");
  if (use !== undefined && use !== "sig") throw keyError("the JWK has another use than sig");
  if (keyOps !== undefined && !(Array.isArray(keyOps) && keyOps.length === 1 && keyOps[0] === "verify")) {
    throw keyError('the JWK has other key_ops than ["verify"]');
  }
  if (kid !== undefined && kid !== keyid)
    throw keyError("the JWK has another kid than the keyid it is listed under");
  if (typeof x !== "string") throw keyError("the JWK has no x");
  return base64Bytes(x, "base64url");
}

function base64Bytes(text: string, encoding: "base64" | "base64url"): Uint8Array {
  const bytes = Buffer.from(text, encoding);
  if (bytes.length !== 32 || bytes.toString(encoding) !== text) {
    throw keyError(
      `expected an SPKI PEM or exactly 32 bytes in ${encoding === "base64" ? "padded base64" : "base64url"}`,
    );
  }
  return bytes;
}

function assertPrimeOrder(bytes: Uint8Array): void {
  let sound: boolean;
  try {
    const point = ed25519.Point.fromBytes(bytes, false);
    sound = !point.isSmallOrder() && point.isTorsionFree();
  } catch {
    throw keyError("the bytes are no canonical Ed25519 point");
  }
  if (!sound) throw keyError("the point is not of prime order: signatures under it can be forged");
}

function validity({ notBefore, notAfter, retired = false }: VerificationKeyOptions): VerificationKeyOptions {
  if (typeof retired !== "boolean") throw keyError("retired must be true or false");
  const first = unixSeconds("notBefore", notBefore);
  const last = unixSeconds("notAfter", notAfter);
  if (first !== undefined && last !== undefined && first > last) {
    throw keyError("notBefore must not be later than notAfter");
  }
  return { notBefore: first, notAfter: last, retired };
}

function unixSeconds(name: string, value: number | undefined): number | undefined {
  if (value !== undefined && (!Number.isSafeInteger(value) || value < 0)) {
    throw keyError(`${name} must be a whole number of Unix seconds`);
  }
  return value;
}

function keyError(what: string): TypeError {
  return new TypeError(`importVerificationKey: ${what}`);
}
