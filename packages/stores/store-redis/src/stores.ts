import { readOptions } from "@countersign/core/internal";
import { RedisIdempotencyStore } from "./idempotency-store.ts";
import { Nonces, type RedisNonceStore } from "./nonce-store.ts";
import { type RedisStoresOptions, factoryName, table } from "./options.ts";
import { ServerCheck } from "./server-check.ts";

export interface RedisStores {
  readonly idempotency: RedisIdempotencyStore;
  readonly nonces: RedisNonceStore;
  /** Closes both stores; the client stays open. */
  close(): void;
}

/** Creates both stores on Redis 6.2 or newer, or Valkey. Sends nothing before the first step. Throws an OptionError on a wrong option. */
export function createRedisStores(options: RedisStoresOptions): RedisStores {
  const resolved = readOptions(factoryName, table, options);
  const server = new ServerCheck(resolved);
  const idempotency = new RedisIdempotencyStore(resolved, server);
  const nonces = new Nonces(resolved, server);
  return {
    idempotency,
    nonces,
    close() {
      void idempotency.close();
      nonces.close();
    },
  };
}
