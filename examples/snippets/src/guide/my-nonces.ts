import { createHash } from "node:crypto";
import type { NonceClaim, NonceStore } from "@countersign/core";
import { encodeText } from "@countersign/idempotency/store";
import type { Pool } from "pg";

export const createNonceTable = `CREATE TABLE my_nonces (
  id bytea PRIMARY KEY, token text NOT NULL, until_at timestamptz NOT NULL
)`;

const batch = 1_000;

/** `pool`: for the store only, with a `query_timeout`. `now`: for tests. */
export function createMyNonces(
  pool: Pool,
  now?: () => number,
): NonceStore & { prune(): Promise<number> } {
  const clock = (): string =>
    now === undefined
      ? "clock_timestamp()"
      : `(timestamptz 'epoch' + ${now()} * interval '1 ms')`;

  return {
    engine: "my-postgres",

    async claim({ scope, nonce, token, retainMs }: NonceClaim) {
      // Not joined: scope "a:b" with nonce "c" is not "a" with "b:c".
      const id = createHash("sha256").update(JSON.stringify([scope, nonce]));
      // Takes a nonce that is new, has ended, or was claimed by this token.
      const { rowCount } = await pool.query(
        `INSERT INTO my_nonces AS kept (id, token, until_at)
        VALUES ($1, $2, ${clock()} + $3 * interval '1 ms')
        ON CONFLICT (id) DO UPDATE SET token = excluded.token,
          until_at = greatest(kept.until_at, excluded.until_at)
        WHERE kept.token = excluded.token OR kept.until_at < ${clock()}`,
        [id.digest(), encodeText(token), retainMs],
      );
      return rowCount === 1 ? "fresh" : "seen";
    },

    async prune() {
      const over = `until_at < ${clock()}`;
      const { rowCount } = await pool.query(
        `DELETE FROM my_nonces WHERE ${over} AND id = ANY (ARRAY(
          SELECT id FROM my_nonces WHERE ${over}
          LIMIT ${batch} FOR UPDATE SKIP LOCKED))`,
      );
      const removed = rowCount ?? 0;
      return removed < batch ? removed : removed + (await this.prune());
    },
  };
}
