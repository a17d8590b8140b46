import { Engine } from "./engine.ts";
import { IdempotencyTable, type PostgresIdempotencyStore } from "./idempotency-store.ts";
import { NonceTable, type PostgresNonceStore } from "./nonce-store.ts";
import { type PostgresStoresOptions, resolveOptions } from "./options.ts";

export interface PostgresStores {
  readonly idempotency: PostgresIdempotencyStore;
  readonly nonces: PostgresNonceStore;
  /** Resolves when server and tables are as the stores need them; rejects with the remedy. Without it the first step checks, and throws. */
  ready(this: void): Promise<void>;
  /** Closes both stores; the pool stays open. */
  close(this: void): void;
}

/**
 * Creates both stores on tables that `countersign migrate` or migratePostgres() has made. Sends nothing before the first step or ready().
 * Throws an OptionError on a wrong option.
 */
export function createPostgresStores(options: PostgresStoresOptions): PostgresStores {
  const resolved = resolveOptions(options);
  const engine = new Engine(resolved);
  const idempotency = new IdempotencyTable(engine, resolved);
  const nonces = new NonceTable(engine, resolved);
  return {
    idempotency,
    nonces,
    ready: () => engine.ready(),
    close() {
      idempotency.close();
      nonces.close();
    },
  };
}
