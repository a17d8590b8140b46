import type { IdempotencyListQuery } from "@countersign/idempotency";
import {
  decodeText,
  encodeText,
  isAsSeen,
  keyBefore,
  pageOfRows,
  pruning,
  type FirstChange,
  type KeyChange,
  type KeyTable,
  type ListedRows,
  type Seen,
  type SeenRow,
} from "@countersign/idempotency/store";
import { integerOf, singleRow, withImmediateTransaction, type SqliteStatement } from "./connection.ts";
import { columns, KeyRows, rowAt } from "./key-rows.ts";
import { factoryName, type ResolvedSqliteOptions } from "./options.ts";
import { PrunedTable, pruneBatchSize } from "./pruning.ts";
import type { PrunedBatch } from "@countersign/idempotency/store";
import { engineClock, tableNames } from "./schema.ts";

export const name = "sqlite idempotency store";

/** The table of keys. Each step reads and writes under the write lock of the file. */
export class SqliteKeyTable extends PrunedTable implements KeyTable {
  readonly #rows: KeyRows;
  readonly #statements: ReturnType<typeof prepareStatements>;

  constructor(options: ResolvedSqliteOptions) {
    super(name, factoryName, options);
    this.#rows = new KeyRows(options.database, options);
    this.#statements = prepareStatements(options);
  }

  add(key: string, row: FirstChange): number | SeenRow {
    const storedKey = encodeText(key);
    // Most claims of a busy key are duplicates of a paid one: they read, and never queue for the write lock.
    const found = this.#rows.look(storedKey).row;
    if (found !== undefined) return found;
    return withImmediateTransaction(this.options.database, () => {
      const sighting = this.#rows.look(storedKey);
      return sighting.row ?? this.#rows.put(storedKey, sighting, row);
    });
  }

  look(key: string): SeenRow | undefined {
    return this.#rows.look(encodeText(key)).row;
  }

  write(key: string, change: KeyChange, seen: Seen): number | undefined {
    return withImmediateTransaction(this.options.database, () => {
      const storedKey = encodeText(key);
      const sighting = this.#rows.look(storedKey);
      if (sighting.row === undefined || !isAsSeen(sighting.row, seen)) return undefined;
      return this.#rows.put(storedKey, sighting, change);
    });
  }

  list({ state, cursor, limit }: IdempotencyListQuery): ListedRows {
    const { live, done } = this.#statements.pages;
    const now = this.options.now();
    // One row more tells whether another page follows.
    const page = [keyBefore(name, cursor), limit + 1];
    const found = state === "done" ? done.all(now, now, ...page) : live.all(now, state, ...page);
    return pageOfRows(found.map(singleRow), limit, (row) => ({
      key: decodeText(String(row["key"])),
      row: rowAt(row, integerOf(row["now_ms"])),
    }));
  }

  protected removeBatch(): PrunedBatch {
    const { removeExpired, raiseFenceFloor } = this.#statements;
    return withImmediateTransaction(this.options.database, () => {
      const removed = removeExpired.all(this.options.now(), pruneBatchSize).map(singleRow);
      const fences = removed.map((row) => integerOf(row["fence"]));
      if (fences.length > 0) raiseFenceFloor.run(Math.max(...fences));
      return pruning.batchOf(removed);
    });
  }
}

// Plain question marks: numbered parameters are named in one driver. A null time is SQLite's clock, read once the lock is held.
const time = `coalesce(?, ${engineClock})`;

function prepareStatements({ database, table }: ResolvedSqliteOptions) {
  const { idempotency, schema } = tableNames(table);
  const prepare = (sql: string): SqliteStatement<unknown> => database.prepare(sql);
  const page = (condition: string) =>
    prepare(
      `SELECT key, ${columns.join(", ")}, ${time} AS now_ms FROM ${idempotency} WHERE ${condition} ORDER BY key LIMIT ?`,
    );
  return {
    removeExpired: prepare(
      `DELETE FROM ${idempotency} WHERE key IN (
         SELECT key FROM ${idempotency} WHERE state IN ('done', 'free') AND until_ms <= ${time} ORDER BY until_ms LIMIT ?)
       RETURNING state, fence`,
    ),
    raiseFenceFloor: prepare(`UPDATE ${schema} SET fence_floor = max(fence_floor, ?) WHERE id = 1`),
    // Pages in key order, each from the last key of the page before: no key changes pages when others come or go. SQLite uses a partial
    // index only where the query repeats its terms.
    pages: {
      live: page("state IN ('running', 'held') AND state = ? AND key > ?"),
      done: page(`state = 'done' AND until_ms > ${time} AND key > ?`),
    },
  };
}

/** Takes the write lock of an open transaction, by exec(), and writes no page. */
export function takeWriteLock(table: string): string {
  return `UPDATE ${tableNames(table).schema} SET fence_floor = fence_floor WHERE 0`;
}
