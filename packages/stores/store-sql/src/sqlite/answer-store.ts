import { readOptions } from "@countersign/core/internal";
import type { TransactionAnswerStore } from "@countersign/idempotency";
import { TransactionResponseTable } from "../keys/response-table.ts";
import { type SqliteDatabase, withImmediateTransaction } from "./connection.ts";
import { ensureDurability } from "./durability.ts";
import { Engine } from "./engine.ts";
import { table, type SqliteStoresOptions } from "./options.ts";
import { answersMigration, assertKey } from "./schema.ts";

export interface SqliteAnswerStore<
  Db extends SqliteDatabase = SqliteDatabase,
> extends TransactionAnswerStore<Db> {
  readonly retentionMs: number;
  readonly database: Db;
  keep(token: string, answer: Uint8Array): void;
  /** In the transaction that is open on the store's own connection. */
  keepIn(tx: Db, token: string, answer: Uint8Array): void;
  find(token: string): Uint8Array | undefined;
  prune(): number;
  /** Ends the pruning timer; the connection stays open. A later call throws. */
  close(): void;
}

const factoryName = "createAnswers";

/**
 * Creates the store of responses, and its table where it is missing. Sets up the connection as `createStores` does. `retentionMs` is
 * that of the responses. Throws when the connection cannot be made durable, and an OptionError on a wrong option.
 */
export function createSqliteAnswers<Db extends SqliteDatabase>(
  options: SqliteStoresOptions<Db>,
): SqliteAnswerStore<Db> {
  const resolved = readOptions(factoryName, table, options);
  const { database } = options;
  ensureDurability(factoryName, database, resolved.allowInProduction);
  withImmediateTransaction(database, () => {
    database.exec(answersMigration(resolved.table));
  });
  assertKey(factoryName, database, `${resolved.table}_answers`, "token");
  const engine = new Engine(database, resolved, factoryName);
  return new TransactionResponseTable(engine, resolved.retentionMs, database);
}
