import type { Database, SqlValue, TransactionAnswerStore } from "@countersign/idempotency";
import { Engine } from "./engine.ts";
import { type MysqlStoresOptions, type ResolvedMysqlOptions, resolveOptions } from "./options.ts";
import { PrunedTable } from "./pruning.ts";
import { forStatement, isAlone, isInTransaction, microseconds } from "./statement-parts.ts";
import { digestOf, storedBytes } from "./values.ts";

const name = "mysql answer store";

/** Keeps answers of done keys for `retentionMs`, in the table of `migrateMysql`. Throws an OptionError on a wrong option. */
export function createMysqlAnswers<Tx>(options: MysqlStoresOptions<Tx>): TransactionAnswerStore<Tx> {
  const resolved = resolveOptions(options, "createMysqlAnswers");
  return new AnswerTable(new Engine(resolved), resolved);
}

class AnswerTable<Tx> extends PrunedTable<Tx> implements TransactionAnswerStore<Tx> {
  readonly retentionMs: number;

  constructor(engine: Engine<Tx>, options: ResolvedMysqlOptions<Tx>) {
    super(name, engine, options, { table: options.names.answers, isExpired, columns: [] });
    this.retentionMs = options.retentionMs;
  }

  get database(): Database<Tx> {
    return this.options.database;
  }

  async keep(token: string, answer: Uint8Array): Promise<void> {
    await this.alone(...this.#statement(token, answer, forStatement(this.options.lockTimeoutMs), "TRUE"));
  }

  async keepIn(tx: Tx, token: string, answer: Uint8Array): Promise<void> {
    // The session bounds the wait already.
    const statement = this.#statement(token, answer, forStatement(), isInTransaction);
    const kept = await this.server.query(tx, name, ...statement);
    if (kept.length === 0) throw new Error(`${name}: keepIn needs an open transaction`);
  }

  #statement(
    token: string,
    answer: Uint8Array,
    settings: string,
    condition: string,
  ): readonly [string, SqlValue[]] {
    this.gate.assertToken(token);
    if (!(answer instanceof Uint8Array)) throw new TypeError(`${name}: the answer must be bytes`);
    const { names, retentionMs } = this.options;
    const text = `${settings}INSERT INTO ${names.answers} (digest, answer, until_us)
SELECT ?, ?, ${this.now()} + ${microseconds(retentionMs)} FROM DUAL WHERE ${condition}
ON DUPLICATE KEY UPDATE answer = VALUES(answer), until_us = VALUES(until_us) RETURNING ${isAlone}`;
    return [text, [digestOf(token), Buffer.from(answer)]];
  }

  async find(token: string): Promise<Uint8Array | undefined> {
    this.gate.assertToken(token);
    const text = `SELECT answer FROM ${this.options.names.answers} WHERE digest = ? AND until_us > ${this.now()}`;
    const [row] = await this.alone(text, [digestOf(token)]);
    return row === undefined ? undefined : storedBytes(row["answer"]);
  }
}

function isExpired(now: string): string {
  return `until_us <= ${now}`;
}
