import type { NonceClaim, NonceStore } from "@countersign/http-signature-verify";
import { assertDuration, assertOpen, assertText, encodeText, startPruning } from "@countersign/store-core";
import type { Engine } from "./engine.ts";
import { inTransaction } from "./errors.ts";
import { type ResolvedOptions, factory } from "./options.ts";
import { pruneAll, pruneBatchSize } from "./pruning.ts";
import { clockOf, isAlone, isReadyToInsert, milliseconds, timed } from "./statement-parts.ts";
import { digestNonce } from "./stored-key.ts";

/** The nonce store of the verifier on PostgreSQL. */
export interface PostgresNonceStore extends NonceStore {
  claim(claim: NonceClaim): Promise<"fresh" | "seen">;
  /** Removes the nonces whose retention has ended. Returns how many. */
  prune(): Promise<number>;
  /** Ends the pruning timer; the pool stays open. A later call throws. */
  close(): void;
}

const name = "postgres nonce store";
const maxAttempts = 5;

export class NonceTable implements PostgresNonceStore {
  readonly #engine: Engine;
  readonly #options: ResolvedOptions;
  readonly #claimSql: string;
  readonly #lookSql: string;
  readonly #removeExpiredSql: string;
  readonly #stopPruning: () => void;
  #closed = false;

  constructor(engine: Engine, options: ResolvedOptions) {
    this.#engine = engine;
    this.#options = options;
    this.#claimSql = claimStatement(options);
    this.#lookSql = `SELECT ${isAlone} AS is_alone FROM ${options.names.nonces} WHERE digest = $1`;
    this.#removeExpiredSql = removeExpiredStatement(options);
    this.#stopPruning = startPruning({
      factory,
      intervalMs: options.pruneIntervalMs,
      batchSize: pruneBatchSize,
      removeBatch: () => this.#removeBatch(),
    });
  }

  async claim({ scope, nonce, token, retainMs }: NonceClaim): Promise<"fresh" | "seen"> {
    assertOpen(name, this.#closed);
    assertText(name, "scope", scope);
    assertText(name, "nonce", nonce);
    assertText(name, "token", token);
    assertDuration(name, "retainMs", retainMs);
    const digest = digestNonce(scope, nonce);
    const values = timed(this.#options, [digest, encodeText(token), retainMs]);
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      // oxlint-disable-next-line no-await-in-loop -- each attempt goes by what the one before has found
      const claimed = await this.#engine.run(name, this.#claimSql, values);
      if (claimed.length > 0) return "fresh";
      // oxlint-disable-next-line no-await-in-loop
      const [seen] = await this.#engine.run(name, this.#lookSql, [digest]);
      if (seen !== undefined && seen["is_alone"] !== true) break;
      if (seen !== undefined) return "seen";
      // It was there, and was removed since: its retention has ended.
    }
    throw new Error(`${name}: ${inTransaction}`);
  }

  async prune(): Promise<number> {
    assertOpen(name, this.#closed);
    return pruneAll(() => this.#removeBatch());
  }

  close(): void {
    this.#closed = true;
    this.#stopPruning();
  }

  async #removeBatch(): Promise<number> {
    return (await this.#engine.run(name, this.#removeExpiredSql, timed(this.#options, []))).length;
  }
}

// $1 digest, $2 token, $3 retention. A nonce is live up to and including its last millisecond, so that it outlives the signature
// even by the coarsest clock.
function claimStatement(options: ResolvedOptions): string {
  const now = clockOf(options)(3);
  return `INSERT INTO ${options.names.nonces} AS kept (digest, token, until_at)
SELECT $1, $2, ${now} + ${milliseconds("$3")} WHERE ${isReadyToInsert(options.lockTimeoutMs)}
ON CONFLICT (digest) DO UPDATE SET token = excluded.token, until_at = greatest(kept.until_at, excluded.until_at)
WHERE kept.token = excluded.token OR kept.until_at < ${now} RETURNING 1`;
}

// By row address, and expired there, as in the idempotency store.
function removeExpiredStatement(options: ResolvedOptions): string {
  const { nonces } = options.names;
  const isExpired = `until_at < (SELECT ${clockOf(options)(0)})`;
  return `DELETE FROM ${nonces} WHERE ${isExpired} AND ctid = ANY (ARRAY(
  SELECT ctid FROM ${nonces} WHERE ${isExpired} ORDER BY until_at LIMIT ${pruneBatchSize} FOR UPDATE SKIP LOCKED)) RETURNING 1`;
}
