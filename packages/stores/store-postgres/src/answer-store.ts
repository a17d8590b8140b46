import type { AnswerStore } from "@countersign/idempotency";
import { type PrunedBatch, StoreGate, encodeText, pruneAllRemote } from "@countersign/idempotency/store";
import { Engine } from "./engine.ts";
import { type PostgresStoresOptions, type ResolvedPostgresOptions, resolveOptions } from "./options.ts";
import { pruneBatchSize, pruneInBackground } from "./pruning.ts";
import { clockOf, isReadyToInsert, milliseconds, timed } from "./statement-parts.ts";
import { inTransaction } from "./errors.ts";

/** The answers of done keys on PostgreSQL. */
export interface PostgresAnswerStore extends AnswerStore {
  readonly retentionMs: number;
  keep(token: string, answer: Uint8Array): Promise<void>;
  find(token: string): Promise<Uint8Array | undefined>;
  prune(): Promise<number>;
  /** Ends the pruning timer; the pool stays open. A later call throws. */
  close(): void;
}

const name = "postgres answer store";

/**
 * The store of answers on the table that `migratePostgresAnswers` has made, beside those of `migratePostgres`. Takes the options of
 * `createPostgresStores`; `retentionMs` is of the answers. Sends nothing before the first step. Throws a TypeError that names the
 * option when one is wrong.
 */
export function createPostgresAnswers(options: PostgresStoresOptions): PostgresAnswerStore {
  const resolved = resolveOptions(options, "createPostgresAnswers");
  return new AnswerTable(new Engine(resolved), resolved);
}

class AnswerTable implements PostgresAnswerStore {
  readonly engine = "postgresql";
  readonly retentionMs: number;
  readonly #gate = new StoreGate(name);
  readonly #engine: Engine;
  readonly #options: ResolvedPostgresOptions;
  readonly #keepSql: string;
  readonly #findSql: string;
  readonly #removeExpiredSql: string;
  readonly #stopPruning: () => void;

  constructor(engine: Engine, options: ResolvedPostgresOptions) {
    this.#engine = engine;
    this.#options = options;
    this.retentionMs = options.retentionMs;
    const { answers } = options.names;
    const clock = clockOf(options);
    this.#keepSql = `INSERT INTO ${answers} (token, answer, until_at)
SELECT $1, $2::bytea, ${clock(3)} + ${milliseconds("$3")} WHERE ${isReadyToInsert(options.lockTimeoutMs)}
ON CONFLICT (token) DO UPDATE SET answer = excluded.answer, until_at = excluded.until_at RETURNING 1`;
    this.#findSql = `SELECT answer FROM ${answers} WHERE token = $1 AND until_at > ${clock(1)}`;
    const isExpired = `until_at <= (SELECT ${clock(0)})`;
    this.#removeExpiredSql = `DELETE FROM ${answers} WHERE ${isExpired} AND ctid = ANY (ARRAY(
  SELECT ctid FROM ${answers} WHERE ${isExpired} ORDER BY until_at LIMIT ${pruneBatchSize} FOR UPDATE SKIP LOCKED)) RETURNING 1`;
    this.#stopPruning = pruneInBackground(options.pruneIntervalMs, () => this.#removeBatch());
  }

  async keep(token: string, answer: Uint8Array): Promise<void> {
    this.#assertToken(token);
    if (!(answer instanceof Uint8Array)) throw new TypeError(`${name}: the answer must be bytes`);
    const values = timed(this.#options, [encodeText(token), Buffer.from(answer), this.retentionMs]);
    const kept = await this.#engine.run(name, this.#keepSql, values);
    if (kept.length === 0) throw new Error(`${name}: ${inTransaction}`);
  }

  async find(token: string): Promise<Uint8Array | undefined> {
    this.#assertToken(token);
    const [row] = await this.#engine.run(name, this.#findSql, timed(this.#options, [encodeText(token)]));
    if (row === undefined) return undefined;
    const { answer } = row;
    if (answer instanceof Uint8Array) return answer;
    throw new Error(`${name}: the driver gave no bytes for a bytea`);
  }

  async prune(): Promise<number> {
    this.#gate.assertUsable();
    return pruneAllRemote(pruneBatchSize, () => this.#removeBatch());
  }

  close(): void {
    this.#gate.close();
    this.#stopPruning();
  }

  #assertToken(token: unknown): void {
    this.#gate.assertToken(token);
  }

  async #removeBatch(): Promise<PrunedBatch> {
    const { length } = await this.#engine.run(name, this.#removeExpiredSql, timed(this.#options, []));
    return { rows: length, counted: length };
  }
}
