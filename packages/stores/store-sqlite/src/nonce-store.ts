import type { NonceClaim, NonceStore } from "@countersign/core";
import { type PrunedBatch, encodeText } from "@countersign/idempotency/store";
import { type SqliteStatement, withImmediateTransaction } from "./connection.ts";
import { factoryName, type ResolvedSqliteOptions } from "./options.ts";
import { PrunedTable } from "./pruning.ts";
import { engineClock, tableNames } from "./schema.ts";

/** The nonce store of the verifier on SQLite. */
export interface SqliteNonceStore extends NonceStore {
  claim(claim: NonceClaim): "fresh" | "seen";
  /** Removes the nonces whose retention has ended. Returns how many. */
  prune(): number;
  /** Ends the pruning timer. A later call throws. */
  close(): void;
}

export class NonceTable extends PrunedTable implements SqliteNonceStore {
  readonly #claim: SqliteStatement;
  readonly #removeExpired: SqliteStatement;

  constructor(options: ResolvedSqliteOptions) {
    super("sqlite nonce store", factoryName, options);
    const { database, table } = options;
    const { nonces } = tableNames(table);
    const time = `coalesce(?, ${engineClock})`;
    // A nonce is live up to and including its last millisecond, so that it outlives the signature even by the coarsest clock.
    this.#claim = database.prepare(
      `INSERT INTO ${nonces} AS kept (scope, nonce, token, until_ms) VALUES (?, ?, ?, ${time} + ?)
       ON CONFLICT (scope, nonce) DO UPDATE SET token = excluded.token, until_ms = max(kept.until_ms, excluded.until_ms)
       WHERE kept.token = excluded.token OR kept.until_ms < ${time}`,
    );
    this.#removeExpired = database.prepare(
      `DELETE FROM ${nonces} WHERE (scope, nonce) IN (
         SELECT scope, nonce FROM ${nonces} WHERE until_ms < ${time} ORDER BY until_ms LIMIT ?)`,
    );
  }

  claim(claim: NonceClaim): "fresh" | "seen" {
    this.gate.assertNonce(claim);
    const { scope, nonce, token, retainMs } = claim;
    const { database, now } = this.options;
    const nowMs = now();
    const stored = [encodeText(scope), encodeText(nonce), encodeText(token)];
    const { changes } = withImmediateTransaction(database, () =>
      this.#claim.run(...stored, nowMs, retainMs, nowMs),
    );
    return Number(changes) > 0 ? "fresh" : "seen";
  }

  protected removeBatch(): PrunedBatch {
    return this.removeWhole(this.#removeExpired);
  }
}
