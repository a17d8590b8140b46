import { createHash } from "node:crypto";
import {
  createIdempotencyStore,
  type IdempotencyListQuery,
  type IdempotencyStore,
} from "@countersign/idempotency";
import {
  decodeText,
  encodeText,
  type FirstChange,
  keyBefore,
  type KeyChange,
  type KeyTable,
  type ListedRows,
  pageOfRows,
  type Row,
  type Seen,
  seenRow,
  type SeenRow,
} from "@countersign/idempotency/store";
import type { Pool } from "pg";

export const createTable = `CREATE TABLE my_keys (
  -- a digest of the key: its 512 characters may not fit into an index
  id bytea PRIMARY KEY,
  key text COLLATE "C" NOT NULL,
  state text NOT NULL, token text NOT NULL, fingerprint text NOT NULL,
  reason text NOT NULL, recovery text NOT NULL,
  until_at timestamptz NOT NULL,
  fence bigint NOT NULL, version bigint NOT NULL DEFAULT 1,
  decision text -- JSON
)`;

const clock = "clock_timestamp()";
const micros = `(extract(epoch FROM ${clock}) * 1000000)::bigint`;
const columns = `key, state, token, fingerprint, reason, recovery, fence,
  version, decision, ${micros} / 1000 AS now_ms,
  ceil(extract(epoch FROM until_at - ${clock}) * 1000) AS remaining_ms`;

const add = `INSERT INTO my_keys
  (id, key, state, token, fingerprint, reason, recovery, until_at, fence)
VALUES ($1, $2, $3, $4, $5, $6, $7, ${clock} + $8 * interval '1 ms',
  ${micros})
ON CONFLICT (id) DO NOTHING RETURNING fence`;

const look = `SELECT ${columns} FROM my_keys WHERE id = $1`;

// Writes over nothing but what was seen: $12 is a version, or $13 are states.
const write = `UPDATE my_keys SET version = version + 1,
  state = $2, reason = $3, until_at = ${clock} + $4 * interval '1 ms',
  token = coalesce($5, token), fingerprint = coalesce($6, fingerprint),
  recovery = coalesce($7, recovery),
  decision = CASE WHEN $8 THEN decision ELSE $9 END,
  fence = CASE WHEN $10 THEN greatest(fence + 1, ${micros}) ELSE fence END
WHERE id = $1 AND token = $11 AND (version = $12 OR state = ANY ($13))
RETURNING fence`;

const list = `SELECT ${columns} FROM my_keys
WHERE state = $1 AND key > $2 ORDER BY key LIMIT $3`;

const prune = `DELETE FROM my_keys
WHERE state IN ('done', 'free') AND until_at <= ${clock} RETURNING state`;

/** `pool` needs a `query_timeout`: no reply in time is a failure. */
export function createMyStore(pool: Pool): IdempotencyStore {
  return createIdempotencyStore({ table: new MyTable(pool) });
}

class MyTable implements KeyTable {
  readonly engine = "my-postgres";
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async add(key: string, row: FirstChange): Promise<number | undefined> {
    const { state, token, fingerprint, reason, recovery } = row;
    const texts = [token, fingerprint, reason].map(encodeText);
    const id = [digestOf(key), encodeText(key)];
    const values = [...id, state, ...texts, recovery, row.durationMs];
    return fenceOf(await this.#rows(add, ...values));
  }

  async look(key: string): Promise<SeenRow | undefined> {
    const [row] = await this.#rows(look, digestOf(key));
    return row && seenOf(row);
  }

  async write(
    key: string,
    change: KeyChange,
    seen: Seen,
  ): Promise<number | undefined> {
    const { state, reason, durationMs, decision } = change;
    const written = await this.#rows(
      write,
      digestOf(key),
      state,
      encodeText(reason),
      durationMs,
      change.token && encodeText(change.token),
      change.fingerprint && encodeText(change.fingerprint),
      change.recovery,
      decision === undefined,
      decision && JSON.stringify(decision),
      change.raisesFence === true,
      encodeText(seen.token),
      "version" in seen ? seen.version : null,
      "states" in seen ? seen.states : null,
    );
    return fenceOf(written);
  }

  async list(query: IdempotencyListQuery): Promise<ListedRows> {
    const { state, cursor, limit } = query;
    const after = keyBefore("my store", cursor);
    // One row more than the limit shows that another page follows.
    const found = await this.#rows(list, state, after, limit + 1);
    return pageOfRows(found, limit, (row) => ({
      key: decodeText(String(row["key"])),
      row: seenOf(row),
    }));
  }

  async prune(): Promise<number> {
    const removed = await this.#rows(prune);
    return removed.filter((row) => row["state"] === "done").length;
  }

  // The pool is the platform's.
  close(): void {}

  async #rows(text: string, ...values: unknown[]): Promise<Row[]> {
    return (await this.#pool.query<Row>(text, values)).rows;
  }
}

function digestOf(key: string): Buffer {
  return createHash("sha256").update(encodeText(key)).digest();
}

function fenceOf([row]: readonly Row[]): number | undefined {
  return row && Number(row["fence"]);
}

function seenOf(row: Row): SeenRow {
  return seenRow(row, {
    fence: Number(row["fence"]),
    version: Number(row["version"]),
    remainingMs: Number(row["remaining_ms"]),
    nowMs: Number(row["now_ms"]),
  });
}
