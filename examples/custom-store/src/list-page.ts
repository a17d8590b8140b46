import type { IdempotencyListing, IdempotencyListQuery } from "@countersign/idempotency";
import { recordOf, damagedCursor } from "@countersign/idempotency/store";
import { columns, seenRow, storedOf, textOf } from "./key-row.ts";
import type { StoreParts } from "./options.ts";

/** A page of keys, in the order of their digests: what others add or remove meanwhile moves no key to another page. */
export async function listPage(
  store: string,
  { engine, names, clock, time }: StoreParts,
  { state, cursor, limit }: IdempotencyListQuery,
): Promise<IdempotencyListing> {
  const live = state === "done" ? ` AND until_us > ${clock}` : "";
  // One row more than asked for tells whether another page follows.
  const sql = `SELECT id, ${columns(clock)} FROM ${names.keys}
WHERE state = :state AND id > :after${live} ORDER BY id LIMIT ${limit + 1}`;
  const found = await engine.rows(sql, { state, after: digestBefore(store, cursor), ...time() });
  const listed = found.slice(0, limit);
  const last: unknown = listed.at(-1)?.["id"];
  return {
    entries: listed.flatMap((row) => {
      const record = recordOf(storedOf(seenRow(row)));
      return record === undefined ? [] : [{ key: textOf(row["name"]), record }];
    }),
    cursor: found.length > limit && Buffer.isBuffer(last) ? last.toString("hex") : undefined,
  };
}

function digestBefore(store: string, cursor: unknown): Buffer {
  if (cursor === undefined) return Buffer.alloc(0);
  // It may have come a long way, over a terminal or a URL: a damaged one must not silently begin elsewhere.
  if (typeof cursor !== "string" || !/^[0-9a-f]{64}$/.test(cursor)) throw damagedCursor(store);
  return Buffer.from(cursor, "hex");
}
