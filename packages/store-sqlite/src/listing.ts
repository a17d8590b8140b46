import type {
  IdempotencyListing,
  IdempotencyListQuery,
  IdempotencyRecord,
} from "@countersign/idempotency-guard";
import { cursorBehind, decodeText, keyBefore } from "@countersign/store-core";
import type { KeyRow } from "./claim-decision.ts";
import { type SqliteDatabase, type SqliteRow, type SqliteStatement, integerOf, singleRow } from "./driver.ts";
import { keyRow } from "./idempotency-statements.ts";
import { engineClock, tableNames } from "./schema.ts";

/** Reads a page of keys; a null time is the engine's clock. */
export type ReadPage = (query: IdempotencyListQuery, now: number | null) => IdempotencyListing;

const store = "sqlite idempotency store";

/**
 * Pages in the order of the stored keys, each from behind the last key of the page before: what other connections add or remove
 * in the meantime moves no key from one page to another.
 */
export function preparePages(database: SqliteDatabase, table: string): ReadPage {
  const { idempotency } = tableNames(table);
  const columns = `key, state, token, fence, fingerprint, reason, until_ms, coalesce(?, ${engineClock}) AS now_ms`;
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
    const listed = rows.slice(0, limit).map(singleRow);
    const last = listed.at(-1);
    return {
      entries: listed.map(entryOf),
      cursor: last === undefined || rows.length <= limit ? undefined : cursorBehind(String(last["key"])),
    };
  };
}

/** The row of a key that is not free, as its readers see it. */
export function recordOf(row: KeyRow, nowMs: number): IdempotencyRecord | undefined {
  const { state, token, fence, fingerprint, reason, untilMs } = row;
  if (state === "run") return { state, token, fence, fingerprint, remainingMs: untilMs - nowMs };
  if (state === "held") return { state, token, fence, fingerprint, reason };
  return state === "done" && untilMs > nowMs ? { state, token, fence, fingerprint } : undefined;
}

function entryOf(row: SqliteRow): IdempotencyListing["entries"][number] {
  const record = recordOf(keyRow(row), integerOf(row["now_ms"]));
  if (record === undefined) throw new Error(`${store}: SQLite listed a key that is not in the state`);
  return { key: decodeText(String(row["key"])), record };
}
