import type { IdempotencyListing, IdempotencyListQuery } from "@countersign/idempotency";
import { recordOf, type PageReading, decodeText, keyBefore, pageOf } from "@countersign/idempotency/store";
import { type SqliteDatabase, type SqliteStatement, integerOf, singleRow, storedAt } from "./connection.ts";
import { decisionColumns, engineClock, tableNames } from "./schema.ts";

/** Reads a page of keys; a null time is the engine's clock. */
export type ReadPage = (query: IdempotencyListQuery, now: number | null) => IdempotencyListing;

const store = "sqlite idempotency store";

const reading: PageReading = {
  keyOf: decodeText,
  recordOf: (row) => recordOf(storedAt(row, integerOf(row["now_ms"]))),
};

/**
 * Pages in the order of the stored keys, each from behind the last key of the page before: what other connections add or remove
 * in the meantime moves no key from one page to another.
 */
export function preparePages(database: SqliteDatabase, table: string): ReadPage {
  const { idempotency } = tableNames(table);
  const columns = `key, state, token, fence, fingerprint, reason, until_ms, ${decisionColumns.join(", ")}, coalesce(?, ${engineClock}) AS now_ms`;
  const page = (condition: string): SqliteStatement =>
    database.prepare(`SELECT ${columns} FROM ${idempotency} WHERE ${condition} ORDER BY key LIMIT ?`);
  // The terms of the index word by word: SQLite uses a partial index only where the query repeats them.
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
