import { createSecretKey, KeyObject } from "node:crypto";
import { types } from "node:util";
import type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
import { algorithms, isSignatureAlgorithm, signatureAlgorithms } from "./algorithms/registry.ts";
import { maxKeyidLength } from "./limits.ts";
import { contentOf, type PublicKeyInput, readPublicKey } from "./public-key-input.ts";
import { chooseAlgorithm, type UnknownMembers } from "./public-key-jwk.ts";
import {
  asVetted,
  isRecord,
  keyError,
  type KeyValidity,
  readKeyValidity,
  unixSeconds,
  type VerificationKey,
} from "./verification-key.ts";

interface VerificationKeyOptions extends KeyValidity {
  /** Default the key's own. RSA needs it, unless a JWK has an `alg`, and so does a secret, as `hmac-sha256`. Must be the key's. */
  readonly alg?: SignatureAlgorithm | undefined;
}

const keyidPattern = /^[\x20-\x7e]+$/;

/**
 * Imports and vets a key; its validity is the narrower of the given one and a JWK's. So that only the owner's signatures verify, it takes
 * Ed25519, canonical (RFC 8032 section 5.1.3) and of prime order; an uncompressed point on P-256 or P-384; RSA of 2,048 to 8,192 bits,
 * exponent odd and at least 3; a secret of at least 32 bytes. Throws a TypeError that says what to write instead and never shows the key.
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
  const alg = chooseAlgorithm(read.algorithms, wanted, keyError);
  // Read again as a whole: the halves may contradict each other.
  const whole = narrowed(given, read.jwks ?? []);
  return asVetted({ keyid, alg, publicKey: algorithms[alg].vet(read.key), ...whole });
}

function readAlg(alg: SignatureAlgorithm | undefined): SignatureAlgorithm | undefined {
  if (alg === undefined || isSignatureAlgorithm(alg)) return alg;
  throw keyError(`alg must be one of ${signatureAlgorithms.join(", ")}`);
}

/**
 * Narrows a validity by the `nbf`, `exp` and `revoked.revoked_at` of JWKs (JSON Web Key Parameters registry, OpenID Federation 1.0 section
 * 8.7.2). Throws a TypeError on members of another type.
 */
function narrowed(given: KeyValidity, jwks: readonly UnknownMembers[]): KeyValidity {
  const times = [given, ...jwks.map(jwkTimes)];
  return readKeyValidity({
    ...given,
    notBefore: outermost(Math.max, "notBefore", times),
    notAfter: outermost(Math.min, "notAfter", times),
    revokedAt: outermost(Math.min, "revokedAt", times),
  });
}

function jwkTimes({ nbf, exp, revoked }: UnknownMembers): KeyValidity {
  const revokedAt = isRecord(revoked) ? unixSeconds("revoked_at", revoked["revoked_at"]) : undefined;
  return {
    notBefore: unixSeconds("nbf", nbf),
    notAfter: unixSeconds("exp", exp),
    // One that is revoked at no known time is revoked.
    revokedAt: revoked === undefined ? undefined : (revokedAt ?? 0),
  };
}

function outermost(
  choose: (...times: readonly number[]) => number,
  name: "notBefore" | "notAfter" | "revokedAt",
  times: readonly KeyValidity[],
): number | undefined {
  const known = times.map((each) => each[name]).filter((time) => time !== undefined);
  return known.length === 0 ? undefined : choose(...known);
}

/**
 * Reads the secret of hmac-sha256: bytes, or a secret KeyObject. Refuses text, which may mean its own bytes or those it encodes, and any
 * public key: whoever knows it could sign. Throws a TypeError, made by `error`, that shows nothing of it.
 */
export function readSecret(key: unknown, error: (what: string) => TypeError): KeyObject {
  if (key instanceof KeyObject && key.type !== "secret") {
    throw error(`the KeyObject is a ${key.type} key; hmac-sha256 takes a secret`);
  }
  if (key instanceof KeyObject || types.isUint8Array(key)) {
    const bytes = key instanceof KeyObject ? key.export() : Buffer.from(key);
    const form = formOfKey(bytes);
    if (form === undefined) return createSecretKey(bytes);
    throw error(`the secret is ${form} of a key; give random bytes, such as crypto.randomBytes(32)`);
  }
  if (typeof key === "string") {
    throw error(
      'the secret is a text, which has several readings; give its bytes: Buffer.from(text, "base64")',
    );
  }
  const hint = isRecord(key) && key["kty"] === "oct" ? ': Buffer.from(jwk.k, "base64url")' : "";
  throw error(`expected a secret as Buffer, Uint8Array or secret KeyObject${hint}`);
}

// An SSH key by its whole beginning: four bytes alone, random ones may be.
const keyText = /^\s*(?:-----BEGIN|(?:ssh|ecdsa)-[\w.@-]+[ \t]+AAAA|\{[^]*"kty")/;
// In base64 and in hex, 30 is the tag of every key.
const encodedDer = /^\s*(?:M[A-P]|30)[A-Za-z0-9+/_=\s-]+$/;

function formOfKey(bytes: Buffer): string | undefined {
  // Only the start of a long secret is looked at as text; no key that is taken is as long.
  const text = bytes.toString("latin1", 0, 16_384);
  if (keyText.test(text)) return "the text";
  const encodings = encodedDer.test(text) ? (["base64", "hex"] as const) : [];
  const isDer = [bytes, ...encodings.map((encoding) => Buffer.from(text, encoding))].some(isKeyDer);
  return isDer ? "the DER" : undefined;
}

// SPKI, PKCS #1, PKCS #8, SEC 1 and X.509 begin like this. The shortest key is Ed25519's: no secret of usual length passes for one.
function isKeyDer(der: Buffer): boolean {
  if (der.length < 44 || der[0] !== 0x30) return false;
  const [, first = 0] = der;
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  if (lengthBytes > 2) return false;
  const length = lengthBytes === 0 ? first : der.readUIntBE(2, lengthBytes);
  return length === der.length - 2 - lengthBytes && [0x30, 0x02].includes(der[2 + lengthBytes] ?? 0);
}
