import type { Database, TransactionAnswerStore } from "@countersign/idempotency";
import { Engine } from "./engine.ts";
import { type MysqlStoresOptions, type ResolvedMysqlOptions, resolveOptions } from "./options.ts";
import { PrunedTable } from "./pruning.ts";
import { microseconds, waitingFor, zeroIfAlone, zeroIfOpen, type Statement } from "./statement-parts.ts";
import { digestOf, storedBytes } from "./values.ts";

const name = "mysql answer store";

/** Keeps answers of done keys for `retentionMs`, in a table of `migrate()`. Throws an OptionError on a wrong option. */
export function createMysqlAnswers<Tx>(options: MysqlStoresOptions<Tx>): TransactionAnswerStore<Tx> {
  const resolved = resolveOptions(options, "createAnswers");
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
    const [text, values] = this.#statement(token, answer, zeroIfAlone);
    await this.server.change(name, `${waitingFor(this.options.lockTimeoutMs)}${text}`, values);
  }

  async keepIn(tx: Tx, token: string, answer: Uint8Array): Promise<void> {
    const statement = this.#statement(token, answer, zeroIfOpen);
    await this.server.changeOpen(tx, { store: name, step: "keepIn" }, statement);
  }

  #statement(token: string, answer: Uint8Array, proof: string): Statement {
    this.gate.assertToken(token);
    if (!(answer instanceof Uint8Array)) throw new TypeError(`${name}: the answer must be bytes`);
    const { names, retentionMs } = this.options;
    const bytes = Buffer.from(answer);
    const until = `${this.now()} + ${microseconds(retentionMs)}`;
    const text = `INSERT INTO ${names.answers} (digest, answer, until_us) VALUES (?, ?, ${until} + ${proof})
ON DUPLICATE KEY UPDATE answer = ?, until_us = ${until}`;
    return [text, [digestOf(token), bytes, bytes]];
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
