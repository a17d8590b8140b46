import type { IdempotencyListing, IdempotencyRecord } from "../store.ts";

/** A row by column name. */
export type Row = Readonly<Record<string, unknown>>;

/** The cursor of a page that ended with this key as stored: for stores that page in the order of their stored keys. */
export function cursorBehind(storedKey: string): string {
  return Buffer.from(storedKey, "utf8").toString("base64url");
}

/**
 * The stored key after which to begin, by {@link cursorBehind}; an empty text without a cursor. Throws a TypeError on any other cursor: one
 * that a terminal or a URL has damaged must not silently begin elsewhere.
 */
export function keyBefore(store: string, cursor: unknown): string {
  if (cursor === undefined) return "";
  const storedKey = typeof cursor === "string" ? Buffer.from(cursor, "base64url").toString("utf8") : "";
  if (storedKey === "" || storedKey.includes("\0") || cursorBehind(storedKey) !== cursor)
    throw damagedCursor(store);
  return storedKey;
}

/** What a store throws at a cursor that it never gave. */
export function damagedCursor(store: string): TypeError {
  return new TypeError(`${store}: cursor must be the cursor of the page before`);
}

/** How a store reads a row of its page. */
export interface PageReading {
  readonly keyOf: (storedKey: string) => string;
  /** Undefined for a key that has ended meanwhile: it is left out. */
  readonly recordOf: (row: Row) => IdempotencyRecord | undefined;
}

/**
 * The page of these rows, in the order of their column `key`, a string that `encodeText` made, never a Buffer; one more than `limit`
 * tells that another page follows.
 */
export function pageOf(
  rows: readonly Row[],
  limit: number,
  { keyOf, recordOf }: PageReading,
): IdempotencyListing {
  const listed = rows.slice(0, limit);
  const last = listed.at(-1);
  return {
    entries: listed.flatMap((row) => {
      const record = recordOf(row);
      return record === undefined ? [] : [{ key: keyOf(String(row["key"])), record }];
    }),
    cursor: last === undefined || rows.length <= limit ? undefined : cursorBehind(String(last["key"])),
  };
}
