import type { NonceClaim, NonceStore } from "@countersign/core";
import { pruneAllRemote, startPruning, StoreGate } from "@countersign/idempotency/store";
import { bytesOf, digestOf } from "./key-row.ts";
import { factory, type StoreParts } from "./options.ts";

/** The nonce store of the verifier on MariaDB. */
export interface MariadbNonceStore extends NonceStore {
  claim(claim: NonceClaim): Promise<"fresh" | "seen">;
  /** Removes the nonces whose retention has ended. Returns how many. */
  prune(): Promise<number>;
  /** Ends the pruning timer. A later call throws. */
  close(): void;
}

const name = "mariadb nonce store";
const pruneBatchSize = 500;

export class NonceTable implements MariadbNonceStore {
  readonly #parts: StoreParts;
  readonly #stopPruning: () => void;
  readonly #gate = new StoreGate(name);

  constructor(parts: StoreParts) {
    this.#parts = parts;
    this.#stopPruning = startPruning({
      factory,
      intervalMs: parts.pruneIntervalMs,
      batchSize: pruneBatchSize,
      removeBatch: () => this.#removeBatch(),
    });
  }

  async claim(claim: NonceClaim): Promise<"fresh" | "seen"> {
    this.#gate.assertNonce(claim);
    const { scope, nonce, token, retainMs } = claim;
    const { engine, names, clock, time } = this.#parts;
    // The assignments happen one after the other: the second condition sees the token of the first. A nonce is live up to and
    // including its last microsecond.
    const sql = `INSERT INTO ${names.nonces} (digest, token, until_us) VALUES (:digest, :token, ${clock} + :retainUs)
ON DUPLICATE KEY UPDATE
  token = IF(until_us < ${clock}, VALUES(token), token),
  until_us = IF(token = VALUES(token), GREATEST(until_us, VALUES(until_us)), until_us)
RETURNING token = :token AS is_own`;
    const digest = digestOf(scope, nonce);
    const values = { digest, token: bytesOf(token), retainUs: retainMs * 1_000, ...time() };
    const [row] = await engine.rows(sql, values);
    return Number(row?.["is_own"]) === 1 ? "fresh" : "seen";
  }

  async prune(): Promise<number> {
    this.#gate.assertUsable();
    return pruneAllRemote(pruneBatchSize, async () => {
      const rows = await this.#removeBatch();
      return { rows, counted: rows };
    });
  }

  close(): void {
    this.#gate.close();
    this.#stopPruning();
  }

  #removeBatch(): Promise<number> {
    const { engine, names, clock, time } = this.#parts;
    const sql = `DELETE FROM ${names.nonces} WHERE until_us < ${clock} ORDER BY until_us LIMIT ${pruneBatchSize}`;
    return engine.change(sql, time());
  }
}
