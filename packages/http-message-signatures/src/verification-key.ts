import { createPublicKey, type KeyObject } from "node:crypto";
import type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
import { assertPrimeOrder } from "./algorithms/ed25519.ts";
import { maxKeyidLength } from "./limits.ts";
import { keyError, spkiPrefix } from "./public-key-bytes.ts";
import { publicKeyBytes, type PublicKeyInput } from "./public-key-input.ts";

/** An Ed25519 public key that was vetted by {@link importVerificationKey}. */
export interface VerificationKey {
  readonly keyid: string;
  readonly alg: SignatureAlgorithm;
  readonly publicKey: KeyObject;
  /** Signatures with an earlier `created` are refused. Unix seconds. */
  readonly notBefore?: number | undefined;
  /** Signatures with a later `created` are refused. Unix seconds. */
  readonly notAfter?: number | undefined;
  /** A retired key verifies nothing; unlike an unknown one it is named in the log. */
  readonly retired?: boolean | undefined;
}

/** Validity of a key, in Unix seconds. */
export interface VerificationKeyOptions {
  readonly notBefore?: number | undefined;
  readonly notAfter?: number | undefined;
  readonly retired?: boolean | undefined;
}

const vetted = new WeakSet();
const keyidPattern = /^[\x20-\x7e]+$/;

/**
 * Imports and vets a public key: Ed25519 only, canonical encoding (RFC 8032 section 5.1.3), of prime order, so that no
 * signature verifies under it but its owner's. Throws a TypeError that says what the key looks like and what to write instead;
 * never shows it.
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
