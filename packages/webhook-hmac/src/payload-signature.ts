import { createHmac, timingSafeEqual, type KeyObject } from "node:crypto";
import { assertKnownOptions, optionError } from "@countersign/guard";
import { importSecret, isSecretEncoding, type SecretEncoding } from "./secret.ts";
import { isSignatureEncoding, type SignatureEncoding } from "./signature-field.ts";

/** Options of {@link signPayload}. */
export interface SignPayloadOptions {
  /** How the secret stands for the key's bytes. Default `utf8`. */
  readonly secretEncoding?: SecretEncoding | undefined;
  /** How the signature is written. Default `base64`. */
  readonly signatureEncoding?: SignatureEncoding | undefined;
}

/**
 * For senders: the value of X-Payload-Signature, the HMAC-SHA-256 (RFC 2104) of the payload. `bytes` must be what goes on the
 * wire. Throws a TypeError for anything but bytes, and for an empty or undecodable secret.
 */
export function signPayload(bytes: Uint8Array, secret: string, options: SignPayloadOptions = {}): string {
  assertKnownOptions("signPayload", options, ["secretEncoding", "signatureEncoding"]);
  const { secretEncoding = "utf8", signatureEncoding = "base64" } = options;
  if (!(bytes instanceof Uint8Array)) {
    throw new TypeError("signPayload: bytes must be a Buffer or Uint8Array");
  }
  if (!isSecretEncoding(secretEncoding)) {
    throw optionError("signPayload", "secretEncoding", '"utf8", "base64" or "hex"', secretEncoding);
  }
  if (!isSignatureEncoding(signatureEncoding)) {
    throw optionError("signPayload", "signatureEncoding", '"base64" or "hex"', signatureEncoding);
  }
  const key = importSecret(secret, secretEncoding, { factory: "signPayload", option: "secret" });
  return createHmac("sha256", key).update(bytes).digest(signatureEncoding);
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
