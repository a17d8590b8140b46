import { createHash } from "node:crypto";
import { encodeText, type Row } from "@countersign/idempotency/store";

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

export function hexOf(digest: unknown): string {
  return storedBytes(digest).toString("hex");
}

/** Libraries give a BIGINT as a number, a string or a bigint, by their settings. */
export function integerOf(value: unknown): number {
  const isNumeric = typeof value === "string" || typeof value === "number" || typeof value === "bigint";
  const integer = isNumeric && value !== "" ? Number(value) : Number.NaN;
  // Not -0, as a negative fraction is rounded up.
  if (Number.isSafeInteger(integer)) return integer + 0;
  throw new Error("the database library gave no integer where there is always one");
}

/** Libraries give a condition as 0 or 1, as a bigint or a boolean. */
export function isTrue(value: unknown): boolean {
  return Number(value) === 1;
}

export function singleRow(rows: readonly Row[]): Row {
  const [row] = rows;
  if (row === undefined) throw new Error("the database library gave no row where there is always one");
  return row;
}
