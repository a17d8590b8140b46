import type { AnswerStore, TransactionAnswerStore } from "@countersign/idempotency";
import { createMysqlAnswers } from "./mysql/answer-store.ts";
import { createPostgresAnswers } from "./postgres/answer-store.ts";
import type { PostgresStoresOptions } from "./postgres/options.ts";
import { createSqliteAnswers, type SqliteAnswerStore } from "./sqlite/answer-store.ts";
import type { SqliteDatabase } from "./sqlite/connection.ts";
import type { SqliteStoresOptions } from "./sqlite/options.ts";
import { assertInBraces, isForMysql, isForSqlite, type StoresOptions } from "./create-stores.ts";

/**
 * Creates the store that keeps the responses of done keys for `retentionMs`, by the options of `createStores`. On a server its table is one of
 * `migrate()`; SQLite's is created where it is missing. Throws an OptionError on a wrong option.
 */
export function createAnswers<Db extends SqliteDatabase>(
  options: SqliteStoresOptions<Db>,
): SqliteAnswerStore<Db>;
export function createAnswers<Tx>(options: StoresOptions<Tx>): TransactionAnswerStore<Tx>;
export function createAnswers(options: PostgresStoresOptions): AnswerStore;
export function createAnswers<Tx, Db extends SqliteDatabase>(
  options: SqliteStoresOptions<Db> | StoresOptions<Tx> | PostgresStoresOptions,
): SqliteAnswerStore<Db> | TransactionAnswerStore<Tx> | AnswerStore {
  assertInBraces("createAnswers", options);
  if (isForSqlite(options)) return createSqliteAnswers(options);
  return isForMysql(options) ? createMysqlAnswers(options) : createPostgresAnswers(options);
}
