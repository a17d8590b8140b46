import { isUtf8 } from "node:buffer";
import { createPrivateKey, createPublicKey, KeyObject } from "node:crypto";
import { types } from "node:util";
import type { Jwk } from "./algorithms/algorithm.ts";
import {
  attempt,
  ofKind,
  readJwk,
  readJwkSet,
  readMembers,
  type ReadKey,
  type Wanted,
} from "./public-key-jwk.ts";
import { isRecord, keyError, privateKeyError } from "./verification-key.ts";

/**
 * A key to verify with. Text, or the bytes of a file with that text: an SPKI PEM (its line feeds may be a literal `\n`), the SPKI or
 * the 32 bytes of an Ed25519 key in base64 or base64url, JSON of a JWK or JWK Set. Objects: a KeyObject, a JWK (RFC 7518, RFC 8037),
 * or a JWK Set with exactly one key that fits the keyid and `alg`; keys for another purpose do not count. With alg `hmac-sha256` the secret: bytes or a secret KeyObject.
 */
export type PublicKeyInput = string | Uint8Array | Jwk | { readonly keys: readonly Jwk[] } | KeyObject;

const controlOutsideLines = /(?![\t\n\r])\p{Cc}/u;
const pemBlock = /^\s*-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----\s*$/;
// No accepted key has a longer text; no parser sees one.
const mostCharacters = 16_384;

/** Takes off one byte order mark, which an editor writes before the text of a key file (RFC 8259 section 8.1 lets a reader ignore it). */
export function withoutByteOrderMark(text: string): string {
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

/** Parses JSON, and decodes bytes as UTF-8; other input is returned unchanged. Throws a TypeError that quotes nothing. */
export function contentOf(input: unknown): unknown {
  if (types.isUint8Array(input) && !isUtf8(input)) {
    throw keyError('the key is binary; give it as text, such as bytes.toString("base64")');
  }
  const text = types.isUint8Array(input) ? Buffer.from(input).toString("utf8") : input;
  const content = typeof text === "string" ? withoutByteOrderMark(text) : text;
  const isJson = typeof content === "string" && /^\s*[{[]/.test(content);
  const value = isJson ? parsed(content) : content;
  if (Array.isArray(value)) {
    throw keyError("the key is a list; give one key, or a JWK Set as an object with keys");
  }
  return value;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message quotes the text.
    throw keyError("the text looks like JSON, but cannot be parsed; give the JSON text of one JWK");
  }
}

/** Imports a public key of {@link contentOf}, not yet vetted. Throws a TypeError that names the form and shows nothing of the key. */
export function readPublicKey(content: unknown, wanted: Wanted): ReadKey {
  if (content instanceof KeyObject) return readKeyObject(content);
  if (typeof content === "string") return readText(content);
  if (!isRecord(content)) {
    const got = content === null ? "null" : `a value of type ${typeof content}`;
    throw keyError(`expected a public key as PEM, base64, JWK or KeyObject, got ${got}`);
  }
  if (types.isCryptoKey(content)) throw keyError("the key is a CryptoKey; write KeyObject.from(key)");
  if (types.isPromise(content)) throw keyError("the key is a promise; await it first");
  if (types.isAnyArrayBuffer(content) || ArrayBuffer.isView(content)) {
    throw keyError("the key is binary, but no Uint8Array; give it as text: PEM, base64 or JSON");
  }
  const { keys, kty } = content;
  if (keys === undefined) return readJwk(content, wanted.keyid);
  if (Array.isArray(keys) && kty === undefined) return readJwkSet(keys, wanted);
  throw keyError("the object is neither a JWK nor a JWK Set; give one JWK");
}

function readKeyObject(key: KeyObject): ReadKey {
  if (key.type === "private") throw privateKeyError("the KeyObject");
  const der = key.type === "public" ? attempt(() => key.export({ format: "der", type: "spki" })) : undefined;
  if (der !== undefined) return readSpki(der, "the KeyObject");
  if (key.type === "public")
    throw keyError("the KeyObject cannot be exported, as a point at infinity cannot");
  throw keyError(
    'the KeyObject is a secret key; give a public key, or write alg: "hmac-sha256" if both sides share it',
  );
}

// The first pattern that fits a text which is no key says what it is.
const otherForms: readonly (readonly [pattern: RegExp, says: string])[] = [
  [/^$/, "the key is empty; is an environment variable or a file not set?"],
  [/^["'`]/, "the key stands in quotation marks; write it without them"],
  [
    /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE/,
    "the PEM is a certificate; give its public key: openssl x509 -in cert.pem -pubkey -noout",
  ],
  [
    /-----BEGIN RSA PUBLIC KEY/,
    "the PEM is an RSA key as PKCS #1; give it as SPKI: openssl rsa -RSAPublicKey_in -in key.pem -pubout",
  ],
  [/-----BEGIN[^]*-----BEGIN/, "the text holds several PEM blocks; give the one of this keyid"],
  [
    /-----BEGIN PUBLIC KEY-----[^]*-----END PUBLIC KEY-----/,
    'the text holds more than the PEM block; give "PUBLIC KEY" from BEGIN to END and nothing else',
  ],
  [
    /-----BEGIN PUBLIC KEY-----/,
    "the PEM has no END line; copy the whole block, or quote it where lines end a value",
  ],
  [/-----BEGIN/, 'the PEM is of another kind; expected one block "PUBLIC KEY" (SPKI)'],
  [
    /^(?:ssh|ecdsa|sk-[a-z0-9]+)-| ssh-|BEGIN SSH2/,
    "the key is an SSH key; give PEM, or of Ed25519 the last 32 bytes: cut -d' ' -f2 key.pub | base64 -d | tail -c 32 | base64",
  ],
  [
    /^(?:0x)?[0-9a-f]{2}(?:[: ]?[0-9a-f]{2})*$/i,
    'the key is in hex; give base64: Buffer.from(text, "hex").toString("base64")',
  ],
  [
    /\.(?:pem|pub|key|der|crt|cer|jwk|jwks|json)$|^[.~/][/.]/,
    'the key looks like the path of a file; give its content: readFileSync(path, "utf8")',
  ],
  [
    /^[A-Za-z0-9+/_-]+={0,2}$/,
    "the text looks like base64, but is neither 32 bytes nor an SPKI: cut short, wrongly padded, or a private key beside its public one",
  ],
  [
    /^/,
    "the key is in no known form; expected an SPKI PEM, base64 of the SPKI or of the 32 bytes of Ed25519, or a JWK",
  ],
];

function readText(text: string): ReadKey {
  // One reader takes some of these for white space, another for text.
  if (controlOutsideLines.test(text)) {
    throw keyError("the key holds control characters; give it as text: PEM, base64 or JSON");
  }
  if (text.length > mostCharacters) throw keyError("the text is longer than any key");
  // Environment variables hold line feeds like this. A PEM has no backslash, so there is one reading.
  const trimmed = text.replaceAll("\\r", "\r").replaceAll("\\n", "\n").trim();
  const pem = pemBlock.exec(trimmed)?.[1]?.replace(/\s+/g, "");
  if (pem !== undefined) {
    const der = Buffer.from(pem, "base64");
    if (der.toString("base64") === pem) return readSpki(der, "the PEM");
    throw keyError("the PEM is cut short or damaged; copy the whole block");
  }
  if (/-----BEGIN [A-Z ]*PRIVATE KEY/.test(trimmed)) throw privateKeyError("the PEM");
  // RFC 4648 section 3.5: in the one spelling that the bytes have in either alphabet.
  const bytes = Buffer.from(trimmed, "base64");
  if (bytes.length > 0 && [bytes.toString("base64"), bytes.toString("base64url")].includes(trimmed)) {
    if (bytes.length === 32)
      return readMembers({ kty: "OKP", crv: "Ed25519", x: bytes.toString("base64url") });
    if (bytes[0] === 0x30) return readSpki(bytes, "the key in base64");
  }
  throw keyError(otherForms.find(([pattern]) => pattern.test(trimmed))?.[1] ?? "the key is in no known form");
}

/** Imports a SubjectPublicKeyInfo (RFC 5280 section 4.1) that is written exactly as Node writes it again. */
function readSpki(der: Buffer, got: string): ReadKey {
  const key = attempt(() => createPublicKey({ key: der, format: "der", type: "spki" }));
  if (key === undefined) {
    const isPrivate = (["pkcs8", "pkcs1", "sec1"] as const).some(
      (type) => attempt(() => createPrivateKey({ key: der, format: "der", type })) !== undefined,
    );
    if (isPrivate) throw privateKeyError(got);
    throw keyError(
      `${got} is cut short, damaged, or holds no public key (SPKI); make it by openssl pkey -pubin -in key.pem`,
    );
  }
  const written = attempt(() => key.export({ format: "der", type: "spki" }));
  if (written?.equals(der) === true) return ofKind(key, got);
  // OpenSSL ignores bytes after the end, reads BER (a length in more bytes, an absent NULL), and cannot write a point at infinity.
  throw keyError(
    `${got} has bytes after its end, or is not the DER of its public key; make it by openssl pkey -pubin -in key.pem`,
  );
}
