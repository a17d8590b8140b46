import { isUtf8 } from "node:buffer";
import { KeyObject, type JsonWebKey } from "node:crypto";
import { types } from "node:util";
import { keyError, keyObjectBytes, privateKeyError, rawOrSpkiBytes } from "./public-key-bytes.ts";
import { textBytes } from "./public-key-text.ts";

/**
 * An Ed25519 public key. Text: SPKI PEM (its line feeds may be a literal `\n`), the raw 32 bytes or the SPKI DER in base64,
 * base64url or hex, a line `ssh-ed25519 AAAA...`, JSON of a JWK or JWK Set. Bytes: the 32 themselves, the SPKI DER, or such a
 * text. Objects: a KeyObject, a JWK (RFC 8037), or a JWK Set with exactly one key that fits the keyid.
 */
export type PublicKeyInput =
  | string
  | Uint8Array
  | JsonWebKey
  | { readonly keys: readonly JsonWebKey[] }
  | KeyObject;

const controlOutsideLines = /(?![\t\n\r])\p{Cc}/u;

/** The 32 bytes of a public key, not yet vetted. Throws a TypeError that names the form and shows nothing of the key. */
export function publicKeyBytes(key: PublicKeyInput, keyid: string): Uint8Array {
  if (key instanceof KeyObject) return keyObjectBytes(key);
  if (typeof key === "string") return stringBytes(key, keyid);
  if (types.isUint8Array(key)) return binaryBytes(key, keyid);
  if (isRecord(key)) return objectBytes(key, keyid);
  if (Array.isArray(key)) throw listError();
  const got = key === null ? "null" : `a value of type ${typeof key}`;
  throw keyError(`expected a public key as PEM, base64, JWK, bytes or KeyObject, got ${got}`);
}

function stringBytes(text: string, keyid: string): Uint8Array {
  // Some of them are white space to one reader and text to another.
  if (controlOutsideLines.test(text)) {
    throw keyError("the key holds control characters; give the text alone, or a Buffer of its bytes");
  }
  const start = text.trimStart()[0];
  if (start !== "{" && start !== "[") return textBytes(text);
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    // The parser's message quotes the text.
    throw keyError("the key looks like JSON, but cannot be parsed; give the JSON text of one JWK");
  }
  if (isRecord(content)) return objectBytes(content, keyid);
  throw listError();
}

function listError(): TypeError {
  return keyError("the key is a list; give one key, or a JWK Set as an object with keys");
}

function binaryBytes(view: Uint8Array, keyid: string): Uint8Array {
  // A copy: the caller's buffer may change.
  const bytes = Buffer.from(view);
  // No text that is taken is as short, and the DER of every key holds control characters.
  const isText = bytes.length > 32 && isUtf8(bytes) && bytes.every((byte) => byte >= 0x20 || isLineEnd(byte));
  return isText ? stringBytes(bytes.toString("utf8"), keyid) : rawOrSpkiBytes(bytes, "the key");
}

function isLineEnd(byte: number): boolean {
  return byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function objectBytes(object: Readonly<Record<string, unknown>>, keyid: string): Uint8Array {
  if (types.isCryptoKey(object)) throw keyError("the key is a CryptoKey; write KeyObject.from(key)");
  if (types.isPromise(object)) throw keyError("the key is a promise; await it first");
  if (types.isAnyArrayBuffer(object) || ArrayBuffer.isView(object)) {
    throw keyError("the key is binary, but no Uint8Array; give a Buffer or Uint8Array of its bytes");
  }
  const { keys } = object;
  if (keys === undefined) return jwkBytes(object, keyid);
  if (!Array.isArray(keys) || object["kty"] !== undefined) {
    throw keyError("the object is neither a JWK nor a JWK Set; give one JWK");
  }
  return jwkSetBytes(keys, keyid);
}

// RFC 7517 section 5: which member is meant is told by the keyid alone, and otherwise not guessed.
function jwkSetBytes(keys: readonly unknown[], keyid: string): Uint8Array {
  const usable: Uint8Array[] = [];
  for (const jwk of keys) {
    if (isRecord(jwk) && jwk["d"] !== undefined) throw privateKeyError("a key of the JWK Set");
    const bytes = usableBytes(jwk, keyid);
    if (bytes !== undefined) usable.push(bytes);
  }
  const [only] = usable;
  if (only !== undefined && usable.length === 1) return only;
  throw keyError(
    `the JWK Set has ${usable.length} of ${keys.length} keys that fit (kty OKP, crv Ed25519, for verifying, kid absent or the keyid); ` +
      "expected exactly one: give that JWK itself",
  );
}

function usableBytes(jwk: unknown, keyid: string): Uint8Array | undefined {
  if (!isRecord(jwk)) return undefined;
  try {
    return jwkBytes(jwk, keyid);
  } catch {
    return undefined;
  }
}

// RFC 8037 section 2, RFC 7517 section 4. Every member that is there must agree.
function jwkBytes(jwk: Readonly<Record<string, unknown>>, keyid: string): Uint8Array {
  const { kty, crv, alg, use, key_ops: keyOps, kid, x, d } = jwk;
  if (d !== undefined) throw privateKeyError("the JWK");
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
  const bytes = Buffer.from(x, "base64url");
  if (bytes.length !== 32 || bytes.toString("base64url") !== x) {
    throw keyError("the x of the JWK is not exactly 32 bytes in base64url without padding");
  }
  return bytes;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
