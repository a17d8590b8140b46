import { isUtf8 } from "node:buffer";
import { KeyObject } from "node:crypto";
import { types } from "node:util";
import type { Jwk, SignatureAlgorithm } from "./algorithms/algorithm.ts";
import { keyError, privateKeyError, readKeyObject, readRawOrSpki, type ReadKey } from "./public-key-bytes.ts";
import { readJwk, type UnknownMembers } from "./public-key-jwk.ts";
import { readText } from "./public-key-text.ts";
import { readSecret } from "./secret-key-input.ts";

/**
 * A key to verify with. Text: SPKI PEM (its line feeds may be a literal `\n`), the SPKI DER or the raw 32 bytes of an Ed25519 key
 * in base64, base64url or hex, a line `ssh-ed25519 AAAA...`, JSON of a JWK or JWK Set. Bytes: the 32 themselves, the SPKI DER, or
 * such a text. Objects: a KeyObject, a JWK (RFC 7518, RFC 8037), or a JWK Set with exactly one key that fits the keyid and `alg`.
 * With alg `hmac-sha256` the secret: bytes, a secret KeyObject, or a JWK of kty oct.
 */
export type PublicKeyInput = string | Uint8Array | Jwk | { readonly keys: readonly Jwk[] } | KeyObject;

const controlOutsideLines = /(?![\t\n\r])\p{Cc}/u;

/** What a key is read for. */
export interface Wanted {
  readonly keyid: string;
  /** The algorithm that was asked for, where one was. */
  readonly alg?: SignatureAlgorithm | undefined;
}

/**
 * The bytes of a key, not yet vetted, and its algorithm. A secret is never read as a public key, nor the reverse. Throws a
 * TypeError that names the form and shows nothing of the key.
 */
export function readKey(
  key: PublicKeyInput,
  wanted: Wanted,
): { readonly alg: SignatureAlgorithm; readonly bytes: Uint8Array } {
  const { keyid, alg } = wanted;
  if (alg === "hmac-sha256") {
    return { alg, bytes: readSecret(key, { keyid, operation: "verify", error: keyError }) };
  }
  const read = readPublicKey(key, wanted);
  return { alg: algorithmOf(read, alg), bytes: read.bytes };
}

function algorithmOf({ algorithms }: ReadKey, alg: SignatureAlgorithm | undefined): SignatureAlgorithm {
  const [only] = algorithms;
  if (alg !== undefined) {
    if (algorithms.includes(alg)) return alg;
    throw keyError(`the key is one of ${algorithms.join(" or ")}, not of ${alg}`);
  }
  if (only !== undefined && algorithms.length === 1) return only;
  throw keyError(
    `the key does not say its algorithm; write alg: ${algorithms.map((each) => `"${each}"`).join(" or ")}`,
  );
}

function readPublicKey(key: PublicKeyInput, wanted: Wanted): ReadKey {
  if (key instanceof KeyObject) return readKeyObject(key);
  if (typeof key === "string") return readString(key, wanted);
  if (types.isUint8Array(key)) return readBinary(key, wanted);
  if (isRecord(key)) return readObject(key, wanted);
  if (Array.isArray(key)) throw listError();
  const got = key === null ? "null" : `a value of type ${typeof key}`;
  throw keyError(`expected a public key as PEM, base64, JWK, bytes or KeyObject, got ${got}`);
}

function readString(text: string, wanted: Wanted): ReadKey {
  // Some of them are white space to one reader and text to another.
  if (controlOutsideLines.test(text)) {
    throw keyError("the key holds control characters; give the text alone, or a Buffer of its bytes");
  }
  const start = text.trimStart()[0];
  if (start !== "{" && start !== "[") return readText(text);
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    // The parser's message quotes the text.
    throw keyError("the key looks like JSON, but cannot be parsed; give the JSON text of one JWK");
  }
  if (isRecord(content)) return readObject(content, wanted);
  throw listError();
}

function listError(): TypeError {
  return keyError("the key is a list; give one key, or a JWK Set as an object with keys");
}

function readBinary(view: Uint8Array, wanted: Wanted): ReadKey {
  // A copy: the caller's buffer may change.
  const bytes = Buffer.from(view);
  // No text that is taken is as short, and the DER of every key holds control characters.
  const isText = bytes.length > 32 && isUtf8(bytes) && bytes.every((byte) => byte >= 0x20 || isLineEnd(byte));
  return isText ? readString(bytes.toString("utf8"), wanted) : readRawOrSpki(bytes, "the key");
}

function isLineEnd(byte: number): boolean {
  return byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function readObject(object: UnknownMembers, wanted: Wanted): ReadKey {
  if (types.isCryptoKey(object)) throw keyError("the key is a CryptoKey; write KeyObject.from(key)");
  if (types.isPromise(object)) throw keyError("the key is a promise; await it first");
  if (types.isAnyArrayBuffer(object) || ArrayBuffer.isView(object)) {
    throw keyError("the key is binary, but no Uint8Array; give a Buffer or Uint8Array of its bytes");
  }
  const { keys } = object;
  if (keys === undefined) return readJwk(object, wanted.keyid);
  if (!Array.isArray(keys) || object["kty"] !== undefined) {
    throw keyError("the object is neither a JWK nor a JWK Set; give one JWK");
  }
  return readJwkSet(keys, wanted);
}

// RFC 7517 section 5: which member is meant is told by the keyid and alg alone, and otherwise not guessed.
function readJwkSet(keys: readonly unknown[], wanted: Wanted): ReadKey {
  const usable: ReadKey[] = [];
  for (const jwk of keys) {
    if (isRecord(jwk) && jwk["d"] !== undefined) throw privateKeyError("a key of the JWK Set");
    const key = usableKey(jwk, wanted);
    if (key !== undefined) usable.push(key);
  }
  const [only] = usable;
  if (only !== undefined && usable.length === 1) return only;
  throw keyError(
    `the JWK Set has ${usable.length} of ${keys.length} keys that fit (an algorithm of RFC 9421, for verifying, kid absent or the keyid); ` +
      "expected exactly one: give that JWK itself, or alg",
  );
}

function usableKey(jwk: unknown, { keyid, alg }: Wanted): ReadKey | undefined {
  if (!isRecord(jwk)) return undefined;
  try {
    const key = readJwk(jwk, keyid);
    algorithmOf(key, alg);
    return key;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is UnknownMembers {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
