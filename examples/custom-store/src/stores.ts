import { KeyTable, type MariadbIdempotencyStore } from "./idempotency-store.ts";
import { NonceTable, type MariadbNonceStore } from "./nonce-store.ts";
import { type MariadbStoresOptions, resolveOptions } from "./options.ts";

/** Both stores, on one pool. */
export interface MariadbStores {
  readonly idempotency: MariadbIdempotencyStore;
  readonly nonces: MariadbNonceStore;
  /** Closes both stores and ends the pool. */
  close(): Promise<void>;
}

/** Connects with the first step of a store. Throws a TypeError that names the option when one is wrong. */
export function createMariadbStores(options: MariadbStoresOptions): MariadbStores {
  const parts = resolveOptions(options);
  const idempotency = new KeyTable(parts);
  const nonces = new NonceTable(parts);
  return {
    idempotency,
    nonces,
    async close() {
      idempotency.close();
      nonces.close();
      await parts.engine.close();
    },
  };
}
