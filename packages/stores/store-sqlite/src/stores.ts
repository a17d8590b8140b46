import { OptionError } from "@countersign/core";
import { readOptions } from "@countersign/core/door";
import { ensureDurability } from "./durability.ts";
import { IdempotencyTable, type SqliteIdempotencyStore } from "./idempotency-store.ts";
import { NonceTable, type SqliteNonceStore } from "./nonce-store.ts";
import { type SqliteStoresOptions, factoryName, table } from "./options.ts";
import { ensureSchema } from "./schema.ts";

export interface SqliteStores {
  readonly idempotency: SqliteIdempotencyStore;
  readonly nonces: SqliteNonceStore;
  /** Closes both stores; the connection stays open. */
  close(): void;
}

/**
 * Creates missing tables and the two stores on them. Sets journal_mode WAL, synchronous FULL and a busy timeout of five seconds on the
 * connection and reads them back. Throws when it cannot be made durable, and an OptionError on a wrong option.
 */
export function createSqliteStores(options: SqliteStoresOptions): SqliteStores {
  assertNoDatabase(options);
  const resolved = readOptions(factoryName, table, options);
  ensureDurability(factoryName, resolved.database, resolved.allowInProduction);
  ensureSchema(factoryName, resolved.database, resolved.table);
  const idempotency = new IdempotencyTable(resolved);
  const nonces = new NonceTable(resolved);
  return {
    idempotency,
    nonces,
    close() {
      idempotency.close();
      nonces.close();
    },
  };
}

// Otherwise the message would call its members unknown options.
function assertNoDatabase(options: object): void {
  if (typeof options !== "object" || options === null || !("prepare" in options)) return;
  throw new OptionError(factoryName, {
    option: "database",
    what: "is what was given: write { database }, in braces",
  });
}
