import type { AnswerStore } from "@countersign/idempotency";
import { encodeText } from "@countersign/idempotency/store";
import { Engine } from "./engine.ts";
import { type PostgresStoresOptions, type ResolvedPostgresOptions, resolveOptions } from "./options.ts";
import { PrunedTable, removal } from "./pruning.ts";
import { clockOf, isReadyToInsert, milliseconds } from "./statement-parts.ts";
import { inTransaction } from "./errors.ts";

const name = "postgres answer store";

/** Keeps answers of done keys for `retentionMs`, in the table of `migratePostgresAnswers`. Throws an OptionError on a wrong option. */
export function createPostgresAnswers(options: PostgresStoresOptions): AnswerStore {
  const resolved = resolveOptions(options, "createPostgresAnswers");
  return new AnswerTable(new Engine(resolved), resolved);
}

class AnswerTable extends PrunedTable implements AnswerStore {
  readonly retentionMs: number;
  readonly #keepSql: string;
  readonly #findSql: string;

  constructor(engine: Engine, options: ResolvedPostgresOptions) {
    const { answers } = options.names;
    const clock = clockOf(options);
    super(name, engine, options, removal(answers, `until_at <= (SELECT ${clock(0)})`, "1"));
    this.retentionMs = options.retentionMs;
    this.#keepSql = `INSERT INTO ${answers} (token, answer, until_at)
SELECT $1, $2::bytea, ${clock(3)} + ${milliseconds("$3")} WHERE ${isReadyToInsert(options.lockTimeoutMs)}
ON CONFLICT (token) DO UPDATE SET answer = excluded.answer, until_at = excluded.until_at RETURNING 1`;
    this.#findSql = `SELECT answer FROM ${answers} WHERE token = $1 AND until_at > ${clock(1)}`;
  }

  async keep(token: string, answer: Uint8Array): Promise<void> {
    this.gate.assertToken(token);
    if (!(answer instanceof Uint8Array)) throw new TypeError(`${name}: the answer must be bytes`);
    const kept = await this.run(this.#keepSql, encodeText(token), Buffer.from(answer), this.retentionMs);
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
}
