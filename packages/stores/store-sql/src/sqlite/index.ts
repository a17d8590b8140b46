export { createSqliteAnswers, type SqliteAnswerStore } from "./answer-store.ts";
export { type SqliteDatabase, withImmediateTransaction } from "./connection.ts";
export type { SqliteStoresOptions } from "./options.ts";
export { sqliteAnswersMigration, sqliteMigration, sqliteSchemaVersion } from "./schema.ts";
export { createSqliteStores, type SqliteStores } from "./stores.ts";
export type { SqliteIdempotencyStore } from "./idempotency-store.ts";
export type { SqliteNonceStore } from "./nonce-store.ts";
