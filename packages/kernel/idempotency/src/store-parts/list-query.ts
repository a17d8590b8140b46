import type { ListedRows } from "../key-table.ts";

/** By column name. */
export type Row = Readonly<Record<string, unknown>>;

/** The cursor of a page that ended with this stored key: for stores that page by stored keys. */
export function cursorBehind(storedKey: string): string {
  return Buffer.from(storedKey, "utf8").toString("base64url");
}

/** The stored key of a {@link cursorBehind}, "" without. Throws a TypeError on a damaged cursor, which must not begin elsewhere. */
export function keyBefore(store: string, cursor: unknown): string {
  if (cursor === undefined) return "";
  const storedKey = typeof cursor === "string" ? Buffer.from(cursor, "base64url").toString("utf8") : "";
  if (storedKey === "" || storedKey.includes("\0") || cursorBehind(storedKey) !== cursor)
    throw damagedCursor(store);
  return storedKey;
}

export function damagedCursor(store: string): TypeError {
  return new TypeError(`${store}: cursor must be the cursor of the page before`);
}

/** A page of a table of keys, of rows in order of `key`. A row beyond `limit` means another page. */
export function pageOfRows(
  found: readonly Row[],
  limit: number,
  read: (row: Row) => ListedRows["rows"][number],
): ListedRows {
  const listed = found.slice(0, limit);
  const last = listed.at(-1);
  return {
    rows: listed.map(read),
    cursor: last === undefined || found.length <= limit ? undefined : cursorBehind(String(last["key"])),
  };
}
