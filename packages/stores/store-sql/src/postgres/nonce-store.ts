import type { NonceClaim } from "@countersign/core";
import { StoreGate, encodeText } from "@countersign/idempotency/store";
import type { ServerNonceStore } from "../server-stores.ts";
import type { Engine } from "./engine.ts";
import { inTransaction } from "./errors.ts";
import type { ResolvedPostgresOptions } from "./options.ts";
import { PrunedTable, removal } from "./pruning.ts";
import { clockOf, isAlone, isReadyToInsert, milliseconds } from "./statement-parts.ts";
import { digestNonce } from "./stored-key.ts";

const name = "postgres nonce store";
const maxAttempts = 5;

export class NonceTable extends PrunedTable implements ServerNonceStore {
  protected readonly gate: StoreGate = new StoreGate(name);
  readonly #claimSql: string;
  readonly #lookSql: string;

  constructor(engine: Engine, options: ResolvedPostgresOptions) {
    const { nonces } = options.names;
    super(name, engine, options, removal(nonces, `until_at < (SELECT ${clockOf(options)(0)})`, "1"));
    this.#claimSql = claimStatement(options);
    this.#lookSql = `SELECT ${isAlone} AS is_alone FROM ${nonces} WHERE digest = $1`;
  }

  async claim(claim: NonceClaim): Promise<"fresh" | "seen"> {
    this.gate.assertNonce(claim);
    const { scope, nonce, token, retainMs } = claim;
    const digest = digestNonce(scope, nonce);
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      // oxlint-disable-next-line no-await-in-loop -- each attempt goes by what the one before has found
      const claimed = await this.run(this.#claimSql, digest, encodeText(token), retainMs);
      if (claimed.length > 0) return "fresh";
      // oxlint-disable-next-line no-await-in-loop -- looks at what the claim has found in its way
      const [seen] = await this.server.run(name, this.#lookSql, [digest]);
      if (seen !== undefined && seen["is_alone"] !== true) break;
      if (seen !== undefined) return "seen";
      // It was there, and was removed since: its retention has ended.
    }
    throw new Error(`${name}: ${inTransaction}`);
  }
}

// $1 digest, $2 token, $3 retention. A nonce lives through its last millisecond, so that it outlives the signature by the coarsest clock.
function claimStatement(options: ResolvedPostgresOptions): string {
  const now = clockOf(options)(3);
  return `INSERT INTO ${options.names.nonces} AS kept (digest, token, until_at)
SELECT $1, $2, ${now} + ${milliseconds("$3")} WHERE ${isReadyToInsert(options.lockTimeoutMs)}
ON CONFLICT (digest) DO UPDATE SET token = excluded.token, until_at = greatest(kept.until_at, excluded.until_at)
WHERE kept.token = excluded.token OR kept.until_at < ${now} RETURNING 1`;
}
