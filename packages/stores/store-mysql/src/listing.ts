import type { IdempotencyListing, IdempotencyListQuery, IdempotencyRecord } from "@countersign/idempotency";
import { damagedCursor, keyBefore, pageOf, storedRecords, type Row } from "@countersign/idempotency/store";
import { keyColumns, nameOf, storedOf } from "./key-row.ts";
import { hexOf } from "./values.ts";

/** A page after the first digest, of as many rows as the second value says, by digest: no key changes pages. */
export function pageStatement(idempotency: string, state: IdempotencyRecord["state"], now: string): string {
  const live = state === "done" ? ` AND until_us > ${now}` : "";
  return `SELECT digest, name, ${keyColumns(now)} FROM ${idempotency}
WHERE state = '${state}'${live} AND digest > ? ORDER BY digest LIMIT ?`;
}

/** One row more than asked for tells whether another page follows. Throws on a bad cursor. */
export function pageValues(store: string, { cursor, limit }: IdempotencyListQuery): [Buffer, number] {
  const digest = keyBefore(store, cursor);
  if (digest !== "" && !/^[0-9a-f]{64}$/.test(digest)) throw damagedCursor(store);
  return [Buffer.from(digest, "hex"), limit + 1];
}

export function pageFrom(rows: readonly Row[], limit: number): IdempotencyListing {
  const names = new Map(rows.map((row) => [hexOf(row["digest"]), nameOf(row)]));
  const keyed = rows.map((row) => ({ ...row, key: hexOf(row["digest"]) }));
  return pageOf(keyed, limit, {
    keyOf: (digest) => names.get(digest) ?? "",
    recordOf: (row) => storedRecords.recordOf(storedOf(row)),
  });
}
