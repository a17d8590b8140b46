export { createMysqlAnswers } from "./answer-store.ts";
export { migrateMysql, mysqlMigration, mysqlSchemaVersion } from "./migration.ts";
export type { MysqlIdempotencyStore } from "./idempotency-store.ts";
export type { MysqlNonceStore } from "./nonce-store.ts";
export type { MysqlStoresOptions } from "./options.ts";
export { createMysqlStores, type MysqlStores } from "./stores.ts";
