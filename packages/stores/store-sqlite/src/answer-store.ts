import { readOptions } from "@countersign/core/door";
import type { AnswerStore } from "@countersign/idempotency";
import { type PrunedBatch, type StoreGate, encodeText, pruneAll } from "@countersign/idempotency/store";
import { type SqliteStatement, createGate, withImmediateTransaction } from "./connection.ts";
import { ensureDurability } from "./durability.ts";
import { table, type ResolvedSqliteOptions, type SqliteStoresOptions } from "./options.ts";
import { pruneBatchSize, pruneInBackground } from "./pruning.ts";
import { answersMigration, answersName, assertKey, engineClock } from "./schema.ts";

/** The answers of done keys on SQLite. */
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
 * Creates the table of answers where it is missing, and the store on it. Takes the options of `createSqliteStores`, and sets the
 * connection up in the same way; `retentionMs` is of the answers. Throws when durability cannot be had, and an OptionError when an
 * option is wrong.
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

class AnswerTable implements SqliteAnswerStore {
  readonly engine = "sqlite";
  readonly retentionMs: number;
  readonly #options: ResolvedSqliteOptions;
  readonly #gate: StoreGate;
  readonly #keep: SqliteStatement<unknown>;
  readonly #find: SqliteStatement<unknown>;
  readonly #removeExpired: SqliteStatement<unknown>;
  readonly #stopPruning: () => void;

  constructor(options: ResolvedSqliteOptions) {
    const { database, pruneIntervalMs: intervalMs, retentionMs } = options;
    const answers = answersName(options.table);
    const time = `coalesce(?, ${engineClock})`;
    this.retentionMs = retentionMs;
    this.#options = options;
    this.#gate = createGate(name, database);
    this.#keep = database.prepare(
      `INSERT INTO ${answers} (token, answer, until_ms) VALUES (?, ?, ${time} + ?)
       ON CONFLICT (token) DO UPDATE SET answer = excluded.answer, until_ms = excluded.until_ms`,
    );
    this.#find = database.prepare(`SELECT answer FROM ${answers} WHERE token = ? AND until_ms > ${time}`);
    this.#removeExpired = database.prepare(
      `DELETE FROM ${answers} WHERE rowid IN (
         SELECT rowid FROM ${answers} WHERE until_ms <= ${time} ORDER BY until_ms LIMIT ?)`,
    );
    this.#stopPruning = pruneInBackground({
      factory: factoryName,
      database,
      intervalMs,
      removeBatch: () => this.#removeBatch(),
    });
  }

  keep(token: string, answer: Uint8Array): void {
    this.#assertToken(token);
    if (!(answer instanceof Uint8Array)) throw new TypeError(`${name}: the answer must be bytes`);
    const { database, now, retentionMs } = this.#options;
    const values = [encodeText(token), Buffer.from(answer), now(), retentionMs];
    withImmediateTransaction(database, () => this.#keep.run(...values));
  }

  find(token: string): Uint8Array | undefined {
    this.#assertToken(token);
    const row = this.#find.get(encodeText(token), this.#options.now());
    if (typeof row !== "object" || row === null) return undefined;
    const answer: unknown = Reflect.get(row, "answer");
    if (answer instanceof Uint8Array) return answer;
    throw new Error("the SQLite driver returned no bytes where there are always some");
  }

  prune(): number {
    this.#gate.assertUsable();
    return pruneAll(pruneBatchSize, () => this.#removeBatch());
  }

  close(): void {
    this.#gate.close();
    this.#stopPruning();
  }

  #assertToken(token: unknown): void {
    this.#gate.assertToken(token);
  }

  #removeBatch(): PrunedBatch {
    const { database, now } = this.#options;
    const remove = () => this.#removeExpired.run(now(), pruneBatchSize);
    const rows = Number(withImmediateTransaction(database, remove).changes);
    return { rows, counted: rows };
  }
}
