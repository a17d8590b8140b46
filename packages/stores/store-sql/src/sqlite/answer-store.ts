import { readOptions } from "@countersign/core/internal";
import type { TransactionAnswerStore } from "@countersign/idempotency";
import { encodeText } from "@countersign/idempotency/store";
import {
  assertConnection,
  type SqliteDatabase,
  type SqliteStatement,
  isInTransaction,
  withImmediateTransaction,
} from "./connection.ts";
import { ensureDurability } from "./durability.ts";
import { table, type ResolvedSqliteOptions, type SqliteStoresOptions } from "./options.ts";
import { PrunedTable } from "./pruning.ts";
import type { PrunedBatch } from "@countersign/idempotency/store";
import { answersMigration, answersName, assertKey, engineClock } from "./schema.ts";

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
const name = "sqlite answer store";

/**
 * Creates the store of answers, and its table where it is missing. Sets up the connection as `createStores` does. `retentionMs` is
 * that of the answers. Throws when the connection cannot be made durable, and an OptionError on a wrong option.
 */
export function createSqliteAnswers<Db extends SqliteDatabase>(
  options: SqliteStoresOptions<Db>,
): SqliteAnswerStore<Db> {
  const resolved = readOptions(factoryName, table, options);
  ensureDurability(factoryName, resolved.database, resolved.allowInProduction);
  withImmediateTransaction(resolved.database, () => {
    resolved.database.exec(answersMigration(resolved.table));
  });
  assertKey(factoryName, resolved.database, `${resolved.table}_answers`, "token");
  return new AnswerTable(options.database, resolved);
}

class AnswerTable<Db extends SqliteDatabase> extends PrunedTable implements SqliteAnswerStore<Db> {
  readonly database: Db;
  readonly retentionMs: number;
  readonly #keep: SqliteStatement<unknown>;
  readonly #find: SqliteStatement<unknown>;
  readonly #removeExpired: SqliteStatement<unknown>;

  constructor(database: Db, options: ResolvedSqliteOptions) {
    super(name, factoryName, options);
    const { retentionMs } = options;
    this.database = database;
    const answers = answersName(options.table);
    const time = `coalesce(?, ${engineClock})`;
    this.retentionMs = retentionMs;
    this.#keep = database.prepare(
      `INSERT INTO ${answers} (token, answer, until_ms) VALUES (?, ?, ${time} + ?)
       ON CONFLICT (token) DO UPDATE SET answer = excluded.answer, until_ms = excluded.until_ms`,
    );
    this.#find = database.prepare(`SELECT answer FROM ${answers} WHERE token = ? AND until_ms > ${time}`);
    this.#removeExpired = database.prepare(
      `DELETE FROM ${answers} WHERE rowid IN (
         SELECT rowid FROM ${answers} WHERE until_ms <= ${time} ORDER BY until_ms LIMIT ?)`,
    );
  }

  keep(token: string, answer: Uint8Array): void {
    this.#assertToken(token);
    withImmediateTransaction(this.database, () => this.#write(token, answer));
  }

  keepIn(tx: Db, token: string, answer: Uint8Array): void {
    this.gate.assertTokenIn(token);
    assertConnection(name, this.database, tx);
    // On its own it would commit at once, and stay when the payment is rolled back.
    if (!isInTransaction(this.database)) throw new Error(`${name}: keepIn needs an open transaction`);
    this.#write(token, answer);
  }

  #write(token: string, answer: Uint8Array): void {
    if (!(answer instanceof Uint8Array)) throw new TypeError(`${name}: the answer must be bytes`);
    const { now, retentionMs } = this.options;
    const { changes } = this.#keep.run(encodeText(token), Buffer.from(answer), now(), retentionMs);
    // A trigger may drop the row.
    if (Number(changes) === 0) throw new Error(`${name}: the answer was not written`);
  }

  find(token: string): Uint8Array | undefined {
    this.#assertToken(token);
    const row = this.#find.get(encodeText(token), this.options.now());
    if (typeof row !== "object" || row === null) return undefined;
    const answer: unknown = Reflect.get(row, "answer");
    if (answer instanceof Uint8Array) return answer;
    throw new Error("the SQLite driver returned no bytes where there are always some");
  }

  #assertToken(token: unknown): void {
    this.gate.assertToken(token);
  }

  protected removeBatch(): PrunedBatch {
    return this.removeWhole(this.#removeExpired);
  }
}
