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
