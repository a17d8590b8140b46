import { createHash } from "node:crypto";
import { encodeText } from "@countersign/idempotency/store";

/** What a text is bound as. Bytes: a string would pass through the character set and the escapes of the session. */
export function bytesOf(text: string): Buffer {
  return Buffer.from(encodeText(text), "utf8");
}

/** What a column of bytes holds, still encoded. */
export function storedText(bytes: unknown): string {
  return storedBytes(bytes).toString("utf8");
}

export function storedBytes(bytes: unknown): Buffer {
  if (bytes instanceof Uint8Array) return Buffer.from(bytes);
  throw new Error("the database library gave no bytes where there are always some");
}

/**
 * By what a row is found: 512 characters can need more bytes than an index takes. The lengths keep two texts apart that are one when
 * joined, and UTF-16 keeps what UTF-8 has no bytes for.
 */
export function digestOf(...texts: readonly string[]): Buffer {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(`${text.length} `).update(text, "utf16le");
  return hash.digest();
}
