import type { IdempotencyListing, IdempotencyListQuery } from "@countersign/idempotency";
import { decodeText, keyBefore, pageOf, storedRecords } from "@countersign/idempotency/store";
import { type SqliteDatabase, type SqliteStatement, integerOf, singleRow, storedAt } from "./connection.ts";
import { decisionColumns, engineClock, tableNames } from "./schema.ts";

/** Reads a page of keys; a null time is the engine's clock. */
export type ReadPage = (query: IdempotencyListQuery, now: number | null) => IdempotencyListing;

const store = "sqlite idempotency store";

const reading: Parameters<typeof pageOf>[2] = {
  keyOf: decodeText,
  recordOf: (row) => storedRecords.recordOf(storedAt(row, integerOf(row["now_ms"]))),
};

/** Prepares pages in key order, each from the last key of the page before: no key changes pages when others come or go. */
export function preparePages(database: SqliteDatabase, table: string): ReadPage {
  const { idempotency } = tableNames(table);
  const columns = `key, state, token, fence, fingerprint, reason, until_ms, ${decisionColumns.join(", ")}, coalesce(?, ${engineClock}) AS now_ms`;
  const page = (condition: string): SqliteStatement =>
    database.prepare(`SELECT ${columns} FROM ${idempotency} WHERE ${condition} ORDER BY key LIMIT ?`);
  // Repeats the terms of the index: SQLite uses a partial index only where the query does.
  const live = page("state IN ('run', 'held') AND state = ? AND key > ?");
  const done = page(`state = 'done' AND until_ms > coalesce(?, ${engineClock}) AND key > ?`);

  return ({ state, cursor, limit }, now) => {
    const after = keyBefore(store, cursor);
    // One row more tells whether another page follows.
    const rows =
      state === "done" ? done.all(now, now, after, limit + 1) : live.all(now, state, after, limit + 1);
    return pageOf(rows.map(singleRow), limit, reading);
  };
}
