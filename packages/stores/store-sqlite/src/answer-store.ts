import { readOptions } from "@countersign/core/door";
import type { AnswerStore } from "@countersign/idempotency";
import { type PrunedBatch, encodeText } from "@countersign/idempotency/store";
import { type SqliteStatement, withImmediateTransaction } from "./connection.ts";
import { ensureDurability } from "./durability.ts";
import { table, type ResolvedSqliteOptions, type SqliteStoresOptions } from "./options.ts";
import { PrunedTable } from "./pruning.ts";
import { answersMigration, answersName, assertKey, engineClock } from "./schema.ts";

export interface SqliteAnswerStore extends AnswerStore {
  readonly retentionMs: number;
  keep(token: string, answer: Uint8Array): void;
  find(token: string): Uint8Array | undefined;
  prune(): number;
  /** Ends the pruning timer; the connection stays open. A later call throws. */
  close(): void;
}

const factoryName = "createSqliteAnswers";
const name = "sqlite answer store";

/**
 * Creates the store of answers, and its table where it is missing. Sets up the connection as `createSqliteStores` does. `retentionMs` is
 * that of the answers. Throws when the connection cannot be made durable, and an OptionError on a wrong option.
 */
export function createSqliteAnswers(options: SqliteStoresOptions): SqliteAnswerStore {
  const resolved = readOptions(factoryName, table, options);
  ensureDurability(factoryName, resolved.database, resolved.allowInProduction);
  withImmediateTransaction(resolved.database, () => {
    resolved.database.exec(answersMigration(resolved.table));
  });
  assertKey(factoryName, resolved.database, `${resolved.table}_answers`, "token");
  return new AnswerTable(resolved);
}

class AnswerTable extends PrunedTable implements SqliteAnswerStore {
  readonly retentionMs: number;
  readonly #keep: SqliteStatement<unknown>;
  readonly #find: SqliteStatement<unknown>;
  readonly #removeExpired: SqliteStatement<unknown>;

  constructor(options: ResolvedSqliteOptions) {
    super(name, factoryName, options);
    const { database, retentionMs } = options;
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
    if (!(answer instanceof Uint8Array)) throw new TypeError(`${name}: the answer must be bytes`);
    const { database, now, retentionMs } = this.options;
    const values = [encodeText(token), Buffer.from(answer), now(), retentionMs];
    withImmediateTransaction(database, () => this.#keep.run(...values));
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
