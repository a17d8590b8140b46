export { postgresMissingKeys } from "./table-keys.ts";
export { createPostgresAnswers } from "./answer-store.ts";
export type { PostgresStoreCode } from "./errors.ts";
export {
  migratePostgres,
  migratePostgresAnswers,
  postgresAnswersMigration,
  postgresMigration,
  postgresSchemaVersion,
} from "./migration.ts";
export type { PostgresDatabaseOptions, PostgresStoresOptions } from "./options.ts";
export type { PostgresQueryable } from "./queryable.ts";
export { createPostgresStores, type PostgresStores, type PostgresTransactionStores } from "./stores.ts";
export { createPostgresWork, type PostgresWork } from "./work-store.ts";
export { withPostgresTransaction } from "./transaction.ts";
export type { PostgresIdempotencyStore } from "./idempotency-store.ts";
export type { PostgresNonceStore } from "./nonce-store.ts";
