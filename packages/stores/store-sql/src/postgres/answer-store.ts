import type { AnswerStore, TransactionAnswerStore } from "@countersign/idempotency";
import { ResponseTable, TransactionResponseTable } from "../keys/response-table.ts";
import { Engine } from "./engine.ts";
import {
  type AnyPostgresOptions,
  type PostgresDatabaseOptions,
  type PostgresStoresOptions,
  resolveOptions,
} from "./options.ts";

/**
 * Keeps responses of done keys for `retentionMs`, in a table of `migrate()`; also in the transactions of the option `database`.
 * Throws an OptionError on a wrong option.
 */
export function createPostgresAnswers<Tx>(options: PostgresDatabaseOptions<Tx>): TransactionAnswerStore<Tx>;
export function createPostgresAnswers(options: PostgresStoresOptions): AnswerStore;
export function createPostgresAnswers<Tx>(
  options: AnyPostgresOptions<Tx>,
): AnswerStore | TransactionAnswerStore<Tx> {
  const resolved = resolveOptions(options, "createAnswers");
  const { database } = options;
  const engine = new Engine(resolved, database);
  return database === undefined
    ? new ResponseTable(engine, resolved.retentionMs)
    : new TransactionResponseTable(engine, resolved.retentionMs, database);
}
