import type { NonceClaim, NonceStore } from "@countersign/core";
import { encodeText } from "@countersign/idempotency/store";
import { type SqliteDatabase, type SqliteStatement, withImmediateTransaction } from "./connection.ts";
import { factoryName, type ResolvedSqliteOptions } from "./options.ts";
import { PrunedTable } from "./pruning.ts";
import type { PrunedBatch } from "@countersign/idempotency/store";
import { engineClock, tableNames } from "./schema.ts";

/** The nonce store of the verifier on SQLite. */
export interface SqliteNonceStore extends NonceStore {
  claim(claim: NonceClaim): "fresh" | "seen";
  /** Removes the nonces whose retention has ended. Returns how many. */
  prune(): number;
  /** Ends the pruning timer. A later call throws. */
  close(): void;
}

const time = `coalesce(?, ${engineClock})`;

export function prepareNonceClaim(database: SqliteDatabase, table: string): SqliteStatement {
  // A nonce is live up to and including its last millisecond, so that it outlives the signature even by the coarsest clock.
  return database.prepare(
    `INSERT INTO ${tableNames(table).nonces} AS kept (scope, nonce, token, until_ms) VALUES (?, ?, ?, ${time} + ?)
     ON CONFLICT (scope, nonce) DO UPDATE SET token = excluded.token, until_ms = max(kept.until_ms, excluded.until_ms)
     WHERE kept.token = excluded.token OR kept.until_ms < ${time}`,
  );
}

/** Claims a nonce in the open transaction. `nowMs` is null for the engine's clock. */
export function claimNonce(
  statement: SqliteStatement,
  { scope, nonce, token, retainMs }: NonceClaim,
  nowMs: number | null,
): "fresh" | "seen" {
  const stored = [encodeText(scope), encodeText(nonce), encodeText(token)];
  return Number(statement.run(...stored, nowMs, retainMs, nowMs).changes) > 0 ? "fresh" : "seen";
}

export class NonceTable extends PrunedTable implements SqliteNonceStore {
  readonly #claim: SqliteStatement;
  readonly #removeExpired: SqliteStatement;

  constructor(options: ResolvedSqliteOptions) {
    super("sqlite nonce store", factoryName, options);
    const { database, table } = options;
    const { nonces } = tableNames(table);
    this.#claim = prepareNonceClaim(database, table);
    this.#removeExpired = database.prepare(
      `DELETE FROM ${nonces} WHERE (scope, nonce) IN (
         SELECT scope, nonce FROM ${nonces} WHERE until_ms < ${time} ORDER BY until_ms LIMIT ?)`,
    );
  }

  claim(claim: NonceClaim): "fresh" | "seen" {
    this.gate.assertNonce(claim);
    const { database, now } = this.options;
    const nowMs = now();
    return withImmediateTransaction(database, () => claimNonce(this.#claim, claim, nowMs));
  }

  protected removeBatch(): PrunedBatch {
    return this.removeWhole(this.#removeExpired);
  }
}
