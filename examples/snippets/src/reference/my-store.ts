import { createHash } from "node:crypto";
import type {
  IdempotencyClaim,
  IdempotencyClaimResult,
  IdempotencyOwnership,
  IdempotencyStore,
} from "@countersign/idempotency";
import {
  type Row,
  StoreGate,
  type StoredRecord,
  decideClaim,
  encodeText,
  leaseExpired,
  storedRecords,
} from "@countersign/idempotency/store";
import type { Pool } from "pg";

export const createTable = `CREATE TABLE my_keys (
  -- a digest of the key: its 512 characters may not fit into an index
  id bytea PRIMARY KEY,
  name text, state text, token text, fence bigint,
  fingerprint text, reason text, until_at timestamptz,
  version bigint DEFAULT 1 -- counts the changes
)`;

const clock = "clock_timestamp()";
const look = `SELECT state, token, fence, fingerprint, reason, version,
  ceil(extract(epoch FROM until_at - ${clock}) * 1000) AS remaining_ms
FROM my_keys WHERE id = $1`;
const renew = `UPDATE my_keys
SET until_at = ${clock} + $3 * interval '1 ms', version = version + 1
WHERE id = $1 AND token = $2 AND state = 'running'`;
// Writes over nothing but what was looked at: $8 is its version, null for no
// row. $9 says whether the key changes hands.
const write = `INSERT INTO my_keys AS kept
  (id, name, state, token, fingerprint, reason, until_at, fence)
VALUES ($1, $2, $3, $4, $5, $6, ${clock} + $7 * interval '1 ms',
  extract(epoch FROM ${clock}) * 1000000)
ON CONFLICT (id) DO UPDATE SET state = excluded.state,
  token = excluded.token, fingerprint = excluded.fingerprint,
  reason = excluded.reason, until_at = excluded.until_at,
  version = kept.version + 1,
  fence = CASE WHEN $9 THEN greatest(kept.fence + 1, excluded.fence)
    ELSE kept.fence END
WHERE kept.version = $8 RETURNING fence`;

export class MyStore implements Pick<
  IdempotencyStore,
  "claim" | "heartbeat"
> {
  readonly #gate = new StoreGate("my store");
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async claim(
    key: string,
    claim: IdempotencyClaim,
  ): Promise<IdempotencyClaimResult> {
    this.#gate.assertClaim(key, claim);
    const row = await this.#look(key);
    const seen = row && storedOf(row);
    const decision = decideClaim(seen, claim);
    if (decision.action === "answer") return decision.result;
    const isTaken = decision.action === "take";
    const isHeld = decision.action === "hold";
    const { token, fingerprint } =
      isTaken || seen === undefined ? claim : seen;
    const state = [
      isHeld ? "held" : "running",
      encodeText(token),
      encodeText(fingerprint),
      isHeld ? leaseExpired : "",
    ];
    const values = [
      digestOf(key),
      encodeText(key),
      ...state,
      claim.leaseMs,
      row?.["version"],
      isTaken,
    ];
    const { rows } = await this.#pool.query<Row>(write, values);
    const [written] = rows;
    // Somebody was faster: the key is not as it was when this was decided.
    if (written === undefined) return this.claim(key, claim);
    return isTaken
      ? { status: "acquired", fence: Number(written["fence"]) }
      : decision.result;
  }

  async heartbeat(
    key: string,
    token: string,
    leaseMs: number,
  ): Promise<IdempotencyOwnership> {
    this.#gate.assertHeartbeat(key, token, leaseMs);
    const { rowCount } = await this.#pool.query(renew, [
      digestOf(key),
      encodeText(token),
      leaseMs,
    ]);
    return rowCount === 1 ? "ok" : "lost";
  }

  async #look(key: string): Promise<Row | undefined> {
    const { rows } = await this.#pool.query<Row>(look, [digestOf(key)]);
    return rows[0];
  }
}

function digestOf(key: string): Buffer {
  return createHash("sha256").update(encodeText(key)).digest();
}

function storedOf(row: Row): StoredRecord {
  const [fence, remainingMs] = [
    Number(row["fence"]),
    Number(row["remaining_ms"]),
  ];
  return storedRecords.ofRow(row, { fence, remainingMs, integerOf: Number });
}
