import { createSecretKey, type KeyObject } from "node:crypto";
import { optionError } from "@countersign/guard";

/** How the text of a secret stands for the bytes of the key. */
export type SecretEncoding = "utf8" | "base64" | "hex";

const expectations: Readonly<Record<SecretEncoding, string>> = {
  utf8: "a string that is not blank",
  base64: "base64 with padding of a key that is not all zeros",
  hex: "pairs of hexadecimal digits that are not all zeros",
};

/** Whether `value` is an encoding that {@link importSecret} knows. */
export function isSecretEncoding(value: unknown): value is SecretEncoding {
  return typeof value === "string" && Object.hasOwn(expectations, value);
}

/**
 * The key that a secret stands for. Throws a TypeError for an empty or blank one, for one of zero bytes, and for text that is not
 * of the encoding; the message holds nothing of it.
 */
export function importSecret(
  secret: unknown,
  encoding: SecretEncoding,
  { factory, option }: { readonly factory: string; readonly option: string },
): KeyObject {
  const bytes = typeof secret === "string" && secret.trim() !== "" ? decode(secret, encoding) : undefined;
  // RFC 2104 section 2 pads a key with zeros: of zeros alone it is the empty key.
  if (bytes === undefined || bytes.every((byte) => byte === 0)) {
    throw optionError(factory, option, expectations[encoding], secret);
  }
  return createSecretKey(bytes);
}

function decode(secret: string, encoding: SecretEncoding): Buffer | undefined {
  const bytes = Buffer.from(secret, encoding);
  // Node skips what it cannot decode, and encodes a lone surrogate as another character.
  const decoded = bytes.toString(encoding);
  return decoded === (encoding === "hex" ? secret.toLowerCase() : secret) ? bytes : undefined;
}
