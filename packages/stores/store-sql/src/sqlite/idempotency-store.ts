import { TableStore } from "@countersign/idempotency/store";
import { createGate } from "./connection.ts";
import { name, SqliteKeyTable } from "./key-table.ts";
import type { ResolvedSqliteOptions } from "./options.ts";

/**
 * The idempotency store on SQLite. Every method returns a value, never a promise. `list` pages in the order of the keys' bytes, and throws
 * a TypeError on a damaged cursor.
 */
export class SqliteIdempotencyStore extends TableStore<"sync"> {
  constructor(options: ResolvedSqliteOptions) {
    const gate = createGate(name, options.database);
    super(new SqliteKeyTable(options), { mode: "sync", retentionMs: options.retentionMs, gate });
  }
}
