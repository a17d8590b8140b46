import type { Database, TransactionStore } from "@countersign/idempotency";
import type { WorkStore, WorkStores } from "@countersign/idempotency/work";
import { Engine } from "./engine.ts";
import { PostgresIdempotencyStore } from "./idempotency-store.ts";
import { NonceTable, type PostgresNonceStore } from "./nonce-store.ts";
import {
  type AnyPostgresOptions,
  type PostgresDatabaseOptions,
  type PostgresStoresOptions,
  resolveOptions,
} from "./options.ts";
import { PostgresTransactions } from "./transactions.ts";
import { postgresWorkStore } from "./work-store.ts";

export interface PostgresStores {
  readonly idempotency: PostgresIdempotencyStore;
  readonly nonces: PostgresNonceStore;
  /** Resolves when server and tables are as the stores need them; rejects with the remedy. Without it the first step checks, and throws. */
  ready(this: void): Promise<void>;
  /** Closes the stores; the pool stays open. */
  close(this: void): void;
}

/** Stores of the option `database`. */
export interface PostgresTransactionStores<Tx> extends PostgresStores, WorkStores<Tx, "async"> {
  readonly idempotency: PostgresIdempotencyStore;
  readonly nonces: PostgresNonceStore;
  /** Key, nonce and payment in one transaction of your own library. */
  readonly transactions: TransactionStore<Tx, "async">;
  /** Tasks that commit with what caused them. */
  readonly work: WorkStore<Tx, "async">;
}

/**
 * Creates the stores on tables that `countersign migrate` or migratePostgres() has made; `transactions` and `work` with the option `database`.
 * Sends nothing before the first step or ready(). Throws an OptionError on a wrong option.
 */
export function createPostgresStores<Tx>(options: PostgresDatabaseOptions<Tx>): PostgresTransactionStores<Tx>;
export function createPostgresStores(options: PostgresStoresOptions): PostgresStores;
export function createPostgresStores<Tx>(
  options: AnyPostgresOptions<Tx>,
): PostgresStores | PostgresTransactionStores<Tx> {
  const resolved = resolveOptions(options);
  const engine = new Engine(resolved);
  const idempotency = new PostgresIdempotencyStore(engine, resolved);
  const nonces = new NonceTable(engine, resolved);
  const inside = insideOf(engine, resolved, options.database);
  return {
    idempotency,
    nonces,
    ...inside,
    ready: () => engine.ready(),
    close() {
      void idempotency.close();
      nonces.close();
      inside?.transactions.close();
      inside?.work.close();
    },
  };
}

function insideOf<Tx>(
  engine: Engine,
  options: ReturnType<typeof resolveOptions>,
  database: Database<Tx> | undefined,
) {
  if (database === undefined) return undefined;
  return {
    transactions: new PostgresTransactions(engine, options, database),
    work: postgresWorkStore(engine, options, database),
  };
}
