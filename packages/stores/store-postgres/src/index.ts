export { postgresMissingKeys } from "./table-keys.ts";
export { createPostgresAnswers, type PostgresAnswerStore } from "./answer-store.ts";
export type { PostgresStoreCode } from "./codes.ts";
export type { PostgresIdempotencyStore } from "./idempotency-store.ts";
export {
  migratePostgres,
  migratePostgresAnswers,
  postgresAnswersMigration,
  postgresMigration,
  postgresSchemaVersion,
} from "./migration.ts";
export type { PostgresNonceStore } from "./nonce-store.ts";
export type { PostgresStoresOptions } from "./options.ts";
export type {
  PostgresPoolClient,
  PostgresQueryable,
  PostgresResult,
  PostgresTransaction,
} from "./queryable.ts";
export { createPostgresStores, type PostgresStores } from "./stores.ts";
export type { PostgresTables } from "./table-names.ts";
export {
  withPostgresTransaction,
  type PostgresPool,
  type PostgresTransactionOptions,
} from "./transaction.ts";
