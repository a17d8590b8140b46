import { createHash } from "node:crypto";
import { decodeText, encodeText } from "@countersign/idempotency/store";

// An index entry has at most 2,704 bytes, and 512 characters can need 3,072 when each is escaped. Unescaped they need 1,536.
const longestText = 1536;

// No text of encodeText begins so: JSON knows no such escape.
const inBase64 = String.raw`\x`;

/** The key as stored: as encodeText() has it, or where that is too long for an index, its UTF-16 in base64. */
export function encodeKey(key: string): string {
  const text = encodeText(key);
  return Buffer.byteLength(text) <= longestText
    ? text
    : inBase64 + Buffer.from(key, "utf16le").toString("base64");
}

export function decodeKey(stored: string): string {
  if (!stored.startsWith(inBase64)) return decodeText(stored);
  return Buffer.from(stored.slice(inBase64.length), "base64").toString("utf16le");
}

/** A digest: two texts of 512 characters do not fit into an index. The length keeps cuts apart, UTF-16 what UTF-8 has no bytes for. */
export function digestNonce(scope: string, nonce: string): Buffer {
  return createHash("sha256").update(`${scope.length} ${scope}${nonce}`, "utf16le").digest();
}
