export type { SqliteDatabase, SqliteStatement, SqliteTransaction } from "./driver.ts";
export type { SqliteIdempotencyStore } from "./idempotency-store.ts";
export type { SqliteNonceStore } from "./nonce-store.ts";
export type { SqliteStoresOptions } from "./options.ts";
export { sqliteMigration, sqliteSchemaVersion } from "./schema.ts";
export { createSqliteStores, type SqliteStores } from "./stores.ts";
export { withImmediateTransaction } from "./transaction.ts";
