import { readOptions } from "@countersign/core/internal";
import type { TransactionStore } from "@countersign/idempotency";
import { TableStore } from "@countersign/idempotency/store";
import type { WorkStore } from "@countersign/idempotency/work";
import type { NonceStore, NonceClaim } from "@countersign/core";
import { SqlKeyTable } from "../keys/key-table.ts";
import { NonceTable } from "../keys/nonce-table.ts";
import type { SqliteDatabase } from "./connection.ts";
import { ensureDurability } from "./durability.ts";
import { Engine } from "./engine.ts";
import { type SqliteStoresOptions, factoryName, table } from "./options.ts";
import { ensureSchema } from "./schema.ts";
import { TransactionTable } from "./transaction-store.ts";
import { sqliteWorkStore } from "./work-store.ts";

/** The nonce store of the verifier on SQLite. */
export interface SqliteNonceStore extends NonceStore {
  claim(claim: NonceClaim): "fresh" | "seen";
  /** Removes the nonces whose retention has ended. Returns how many. */
  prune(): number;
  /** Ends the pruning timer. A later call throws. */
  close(): void;
}

export interface SqliteStores<Db extends SqliteDatabase = SqliteDatabase> {
  /** Every method returns a value, never a promise. `list` pages in the order of the keys' bytes, and throws a TypeError on a damaged cursor. */
  readonly idempotency: TableStore<"sync">;
  readonly nonces: SqliteNonceStore;
  /** For a synchronous handler, which gets the connection as `tx`, until it ends; run() waits at most five seconds for the write lock. */
  readonly transactions: TransactionStore<Db, "sync">;
  /** Tasks that commit with a transaction of {@link transactions}. Its other steps wait for the write lock as run() does. */
  readonly work: WorkStore<Db, "sync">;
  /** Closes the stores; the connection stays open. */
  close(): void;
}

/**
 * Creates missing tables and the stores on them. Sets journal_mode WAL, synchronous FULL and a busy timeout of five seconds on the
 * connection and reads them back. Throws when it cannot be made durable, and an OptionError on a wrong option.
 */
export function createSqliteStores<Db extends SqliteDatabase>(
  options: SqliteStoresOptions<Db>,
): SqliteStores<Db> {
  const resolved = readOptions(factoryName, table, options);
  ensureDurability(factoryName, resolved.database, resolved.allowInProduction);
  ensureSchema(factoryName, resolved.database, resolved.table);
  const { retentionMs } = resolved;
  const engine = new Engine(options.database, resolved, factoryName);
  const keys = new SqlKeyTable(engine);
  const gate = engine.createGate(keys.name);
  const idempotency = new TableStore(keys, { mode: "sync", retentionMs, gate });
  const nonces = new NonceTable(engine);
  const transactions = new TransactionTable(engine, resolved);
  const work = sqliteWorkStore(engine, resolved);
  return {
    idempotency,
    nonces,
    transactions,
    work,
    close() {
      work.close();
      transactions.close();
      idempotency.close();
      nonces.close();
    },
  };
}
