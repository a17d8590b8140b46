import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from "node:crypto";
import {
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionRule,
  type OptionTable,
} from "@countersign/core";

/** How the text of a secret stands for the bytes of the key. */
export type SecretEncoding = "utf8" | "base64" | "hex";

const expectations: Readonly<Record<SecretEncoding, string>> = {
  utf8: "a string that is not blank",
  base64: "base64 with padding of a key that is not all zeros",
  hex: "pairs of hexadecimal digits that are not all zeros",
};

/** The rule of the option `secretEncoding`. */
export const secretEncoding: OptionRule<SecretEncoding> = option.oneOf(["utf8", "base64", "hex"], "utf8");

/** Options of {@link signPayload}. */
export interface SignPayloadOptions {
  /** How the secret stands for the key's bytes. Default `utf8`. */
  readonly secretEncoding?: SecretEncoding | undefined;
  /** How the signature is written. Default `base64`. */
  readonly signatureEncoding?: SignatureEncoding | undefined;
}

export const table: OptionTable<SignPayloadOptions> = {
  secretEncoding,
  signatureEncoding: option.oneOf(["base64", "hex"], "base64"),
};

/**
 * For senders: the value of X-Payload-Signature, the HMAC-SHA-256 (RFC 2104) of the payload. `bytes` must be what goes on the
 * wire. Throws a TypeError for anything but bytes, and for an empty or undecodable secret.
 */
export function signPayload(bytes: Uint8Array, secret: string, options: SignPayloadOptions = {}): string {
  const read = readOptions("signPayload", table, options);
  if (!(bytes instanceof Uint8Array)) {
    throw new TypeError("signPayload: bytes must be a Buffer or Uint8Array");
  }
  const key = importSecret(secret, read.secretEncoding, { owner: "signPayload", name: "secret" });
  return createHmac("sha256", key).update(bytes).digest(read.signatureEncoding);
}

// As base64 text in buffers that stay: digests in new Buffers cost more. Nothing awaits between a write and the comparison.
const signatureLength = 44;
const received = Buffer.alloc(signatureLength);
const expected = Buffer.alloc(signatureLength);

/**
 * The position of the key under which `signature`, 32 bytes in base64, is that of `bytes`; -1 when there is none. Every key is tried,
 * and each comparison takes the same time wherever the two differ.
 */
export function matchSignature(signature: string, bytes: Uint8Array, keys: readonly KeyObject[]): number {
  received.write(signature, "latin1");
  let match = -1;
  for (const [index, key] of keys.entries()) {
    expected.write(createHmac("sha256", key).update(bytes).digest("base64"), "latin1");
    if (timingSafeEqual(expected, received) && match === -1) match = index;
  }
  return match;
}

/** How the 32 bytes of a signature are written in the field. */
export type SignatureEncoding = "base64" | "hex";

// The last character of 32 bytes in base64 has two bits that nobody reads: only zeros are taken.
const patterns: Readonly<Record<SignatureEncoding, RegExp>> = {
  base64: /^[ \t]*([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)[ \t]*$/,
  hex: /^[ \t]*([0-9A-Fa-f]{64})[ \t]*$/,
};

/** Whether `value` is an encoding that {@link parseSignature} knows. */
export function isSignatureEncoding(value: unknown): value is SignatureEncoding {
  return typeof value === "string" && Object.hasOwn(patterns, value);
}

/** Reads a field value in one of the encodings. Returns the signature in base64; undefined for anything else. */
export function parseSignature(
  fieldValue: string,
  encodings: readonly SignatureEncoding[],
): string | undefined {
  for (const encoding of encodings) {
    const text = patterns[encoding].exec(fieldValue)?.[1];
    if (text !== undefined) return encoding === "base64" ? text : Buffer.from(text, "hex").toString("base64");
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
