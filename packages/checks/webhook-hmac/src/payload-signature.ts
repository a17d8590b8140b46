import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from "node:crypto";
import { optionError, type OptionOwner } from "@countersign/core/door";

/** How the text of a secret stands for the bytes of the key. */
export type SecretEncoding = "utf8" | "base64" | "hex";

const expectations: Readonly<Record<SecretEncoding, string>> = {
  utf8: "a string that is not blank",
  base64: "base64 with padding of a key that is not all zeros",
  hex: "pairs of hexadecimal digits that are not all zeros",
};

/** The hash of an HMAC. */
export type SignatureAlgorithm = "sha256" | "sha512";

/**
 * For senders: the value of X-Payload-Signature, the HMAC (RFC 2104) by SHA-256 of the payload in base64. `bytes` must be what goes on
 * the wire. Throws a TypeError for anything but bytes, and for an empty secret.
 */
export function signPayload(bytes: Uint8Array, secret: string): string {
  const owner = "signPayload";
  assertBytes(owner, bytes);
  const key = importSecret(secret, "utf8", { owner, name: "secret" });
  return createHmac("sha256", key).update(bytes).digest("base64");
}

/** Throws a TypeError for anything but bytes. */
export function assertBytes(owner: string, bytes: unknown): asserts bytes is Uint8Array {
  if (!(bytes instanceof Uint8Array)) throw new TypeError(`${owner}: bytes must be a Buffer or Uint8Array`);
}

/** What is signed: the body, and the text around it. */
export interface SignedContent {
  readonly before: string;
  readonly body: Uint8Array;
  readonly after: string;
}

/** The HMAC of `content`. */
export function hmacOf(
  { before, body, after }: SignedContent,
  key: KeyObject,
  { algorithm, encoding }: { readonly algorithm: SignatureAlgorithm; readonly encoding: SignatureEncoding },
): string {
  const hmac = createHmac(algorithm, key);
  if (before !== "") hmac.update(before, "latin1");
  hmac.update(body);
  if (after !== "") hmac.update(after, "latin1");
  return hmac.digest(encoding);
}

// As base64 text in buffers that stay: digests in new Buffers cost more. Nothing awaits between a write and the comparison.
const base64Length = { sha256: 44, sha512: 88 };
const bufferPair = (length: number): Readonly<Record<"received" | "expected", Buffer>> => ({
  received: Buffer.alloc(length),
  expected: Buffer.alloc(length),
});
const buffers = { sha256: bufferPair(base64Length.sha256), sha512: bufferPair(base64Length.sha512) };

/**
 * The position of the key under which one of `signatures`, in base64, is that of `content`; -1 when there is none. Every key and
 * every signature is tried, and each comparison takes the same time wherever the two differ.
 */
export function matchSignature(
  signatures: readonly string[],
  content: SignedContent,
  { keys, algorithm }: { readonly keys: readonly KeyObject[]; readonly algorithm: SignatureAlgorithm },
): number {
  const { received, expected } = buffers[algorithm];
  let match = -1;
  for (const [index, key] of keys.entries()) {
    expected.write(hmacOf(content, key, { algorithm, encoding: "base64" }), "latin1");
    for (const signature of signatures) {
      received.write(signature, "latin1");
      if (timingSafeEqual(expected, received) && match === -1) match = index;
    }
  }
  return match;
}

/** How the bytes of a signature are written in the field. */
export type SignatureEncoding = "base64" | "hex";

// The last character before the padding has two bits of 32 bytes, or four of 64, that nobody reads: only zeros are taken.
const patterns: Readonly<Record<SignatureEncoding, Readonly<Record<SignatureAlgorithm, RegExp>>>> = {
  base64: {
    sha256: /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/,
    sha512: /^[A-Za-z0-9+/]{85}[AQgw]==$/,
  },
  hex: { sha256: /^[0-9A-Fa-f]{64}$/, sha512: /^[0-9A-Fa-f]{128}$/ },
};

/** Whether `value` is an encoding that {@link parseSignature} knows. */
export function isSignatureEncoding(value: unknown): value is SignatureEncoding {
  return typeof value === "string" && Object.hasOwn(patterns, value);
}

/** Reads a signature in one of the encodings. Returns it in base64; undefined for anything else. */
export function parseSignature(
  text: string,
  encodings: readonly SignatureEncoding[],
  algorithm: SignatureAlgorithm,
): string | undefined {
  for (const encoding of encodings) {
    if (!patterns[encoding][algorithm].test(text)) continue;
    return encoding === "base64" ? text : Buffer.from(text, "hex").toString("base64");
  }
  return undefined;
}

/**
 * The key that a secret stands for. Throws an OptionError for an empty or blank one, for one of zero bytes, and for text that is not
 * of the encoding; the message holds nothing of it.
 */
export function importSecret(
  secret: unknown,
  encoding: SecretEncoding,
  { owner, name }: { readonly owner: OptionOwner; readonly name: string },
): KeyObject {
  const bytes = typeof secret === "string" && secret.trim() !== "" ? decode(secret, encoding) : undefined;
  // RFC 2104 section 2 pads a key with zeros: of zeros alone it is the empty key.
  if (bytes === undefined || bytes.every((byte) => byte === 0)) {
    throw optionError(owner, name, expectations[encoding], secret);
  }
  return createSecretKey(bytes);
}

function decode(secret: string, encoding: SecretEncoding): Buffer | undefined {
  const bytes = Buffer.from(secret, encoding);
  // Node skips what it cannot decode, and encodes a lone surrogate as another character.
  const decoded = bytes.toString(encoding);
  return decoded === (encoding === "hex" ? secret.toLowerCase() : secret) ? bytes : undefined;
}
