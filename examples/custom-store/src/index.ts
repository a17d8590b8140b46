export { createMariadbStores, type MariadbStores } from "./stores.ts";
export type { MariadbStoresOptions } from "./options.ts";
export { createTables } from "./tables.ts";
export { withTransaction } from "./transaction.ts";
export type { MariadbIdempotencyStore, MariadbTransaction } from "./idempotency-store.ts";
export type { MariadbNonceStore } from "./nonce-store.ts";
