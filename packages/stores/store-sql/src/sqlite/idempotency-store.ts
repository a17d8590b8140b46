import type { IdempotencyOwnership, IdempotencyStore } from "@countersign/idempotency";
import { TableStore } from "@countersign/idempotency/store";
import { createGate, type SqliteDatabase } from "./connection.ts";
import { name, SqliteKeyTable } from "./key-table.ts";
import type { ResolvedSqliteOptions } from "./options.ts";

/**
 * The idempotency store on SQLite. Every method returns a value, never a promise. `list` pages in the order of the keys' bytes, and throws
 * a TypeError on a damaged cursor.
 */
export class SqliteIdempotencyStore
  extends TableStore<"sync", SqliteDatabase>
  implements IdempotencyStore<SqliteDatabase>
{
  constructor(options: ResolvedSqliteOptions) {
    const gate = createGate(name, options.database);
    super(new SqliteKeyTable(options), { mode: "sync", retentionMs: options.retentionMs, gate });
  }

  /**
   * Marks the key done inside the transaction that is open on `tx`, the store's connection or another one of the file. `lost` on a done key.
   * ROLLBACK TO a savepoint takes it back. Throws when no transaction is open there, or when its commits would not be durable.
   */
  completeIn(tx: SqliteDatabase, key: string, token: string): IdempotencyOwnership {
    return this.completeWithin(tx, key, token);
  }
}
