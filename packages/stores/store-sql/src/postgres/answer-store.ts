import type { AnswerStore, Database, TransactionAnswerStore } from "@countersign/idempotency";
import { StoreGate, encodeText } from "@countersign/idempotency/store";
import { queryableIn } from "./database-queryable.ts";
import { Engine } from "./engine.ts";
import {
  type AnyPostgresOptions,
  type PostgresDatabaseOptions,
  type PostgresStoresOptions,
  type ResolvedPostgresOptions,
  resolveOptions,
} from "./options.ts";
import { PrunedTable, removal } from "./pruning.ts";
import { clockOf, isInTransaction, isReadyToInsert, milliseconds, timed } from "./statement-parts.ts";
import { inTransaction } from "./errors.ts";

const name = "postgres answer store";

/**
 * Keeps answers of done keys for `retentionMs`, in a table of `migrate()`; also in the transactions of the option `database`.
 * Throws an OptionError on a wrong option.
 */
export function createPostgresAnswers<Tx>(options: PostgresDatabaseOptions<Tx>): TransactionAnswerStore<Tx>;
export function createPostgresAnswers(options: PostgresStoresOptions): AnswerStore;
export function createPostgresAnswers<Tx>(
  options: AnyPostgresOptions<Tx>,
): AnswerStore | TransactionAnswerStore<Tx> {
  const resolved = resolveOptions(options, "createAnswers");
  const engine = new Engine(resolved);
  const { database } = options;
  return database === undefined
    ? new AnswerTable(engine, resolved)
    : new TransactionAnswerTable(engine, resolved, database);
}

class AnswerTable extends PrunedTable implements AnswerStore {
  protected readonly gate: StoreGate = new StoreGate(name);
  readonly retentionMs: number;
  readonly #keepSql: string;
  protected readonly keepInSql: string;
  readonly #findSql: string;

  constructor(engine: Engine, options: ResolvedPostgresOptions) {
    const { answers } = options.names;
    const clock = clockOf(options);
    super(name, engine, options, removal(answers, `until_at <= (SELECT ${clock(0)})`, "1"));
    this.retentionMs = options.retentionMs;
    const insertWhere = (condition: string): string => `INSERT INTO ${answers} (token, answer, until_at)
SELECT $1, $2::bytea, ${clock(3)} + ${milliseconds("$3")} WHERE ${condition}
ON CONFLICT (token) DO UPDATE SET answer = excluded.answer, until_at = excluded.until_at RETURNING 1`;
    this.#keepSql = insertWhere(isReadyToInsert(options.lockTimeoutMs));
    this.keepInSql = insertWhere(isInTransaction);
    this.#findSql = `SELECT answer FROM ${answers} WHERE token = $1 AND until_at > ${clock(1)}`;
  }

  async keep(token: string, answer: Uint8Array): Promise<void> {
    const kept = await this.run(this.#keepSql, ...this.valuesOf(token, answer));
    if (kept.length === 0) throw new Error(`${name}: ${inTransaction}`);
  }

  async find(token: string): Promise<Uint8Array | undefined> {
    this.gate.assertToken(token);
    const [row] = await this.run(this.#findSql, encodeText(token));
    if (row === undefined) return undefined;
    const { answer } = row;
    if (answer instanceof Uint8Array) return answer;
    throw new Error(`${name}: the driver gave no bytes for a bytea`);
  }

  protected valuesOf(token: string, answer: Uint8Array): readonly unknown[] {
    this.gate.assertToken(token);
    if (!(answer instanceof Uint8Array)) throw new TypeError(`${name}: the answer must be bytes`);
    return [encodeText(token), Buffer.from(answer), this.retentionMs];
  }
}

class TransactionAnswerTable<Tx> extends AnswerTable implements TransactionAnswerStore<Tx> {
  readonly database: Database<Tx>;

  constructor(engine: Engine, options: ResolvedPostgresOptions, database: Database<Tx>) {
    super(engine, options);
    this.database = database;
  }

  async keepIn(tx: Tx, token: string, answer: Uint8Array): Promise<void> {
    const values = timed(this.options, this.valuesOf(token, answer));
    const kept = await this.server.runIn(queryableIn(this.database, tx), name, this.keepInSql, values);
    if (kept.length === 0) throw new Error(`${name}: keepIn needs a transaction that has written`);
  }
}
