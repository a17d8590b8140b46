import type { NonceClaim, NonceStore } from "@countersign/http-signature-verify";
import {
  assertDuration,
  assertOpen,
  assertText,
  encodeText,
  pruneBatchSize,
  startPruning,
} from "@countersign/store-core";
import type { Engine } from "./engine.ts";
import { inTransaction } from "./errors.ts";
import { type ResolvedOptions, factory } from "./options.ts";
import { pruneAll } from "./prune-all.ts";
import { clock, isAlone, isReadyToInsert, milliseconds } from "./statement-parts.ts";
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
    const intervalMs = options.pruneIntervalMs;
    this.#stopPruning = startPruning({ factory, intervalMs, removeBatch: () => this.#removeBatch() });
  }

  async claim({ scope, nonce, token, retainMs }: NonceClaim): Promise<"fresh" | "seen"> {
    assertOpen(name, this.#closed);
    assertText(name, "scope", scope);
    assertText(name, "nonce", nonce);
    assertText(name, "token", token);
    assertDuration(name, "retainMs", retainMs);
    const digest = digestNonce(scope, nonce);
    const values = [digest, encodeText(token), this.#options.now(), retainMs];
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
    return (await this.#engine.run(name, this.#removeExpiredSql, [this.#options.now()])).length;
  }
}

// $1 digest, $2 token, $3 clock, $4 retention. A nonce is live up to and including its last millisecond, so that it outlives the
// signature even by the coarsest clock.
function claimStatement({ names, lockTimeoutMs }: ResolvedOptions): string {
  return `INSERT INTO ${names.nonces} AS kept (digest, token, until_at)
SELECT $1, $2, ${clock("$3")} + ${milliseconds("$4")} WHERE ${isReadyToInsert(lockTimeoutMs)}
ON CONFLICT (digest) DO UPDATE SET token = excluded.token, until_at = greatest(kept.until_at, excluded.until_at)
WHERE kept.token = excluded.token OR kept.until_at < ${clock("$3")} RETURNING 1`;
}

// $1 clock. By row address, as in the idempotency store.
function removeExpiredStatement({ names }: ResolvedOptions): string {
  return `DELETE FROM ${names.nonces} WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM ${names.nonces} WHERE until_at < (SELECT ${clock("$1")})
  ORDER BY until_at LIMIT ${pruneBatchSize} FOR UPDATE SKIP LOCKED)) RETURNING 1`;
}
