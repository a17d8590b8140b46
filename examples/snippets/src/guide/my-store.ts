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

export const createTables = `CREATE TABLE my_keys (
  -- A digest of the key: its 512 characters may not fit into an index.
  id bytea PRIMARY KEY,
  key text COLLATE "C" NOT NULL,
  state text NOT NULL, token text NOT NULL, fingerprint text NOT NULL,
  reason text NOT NULL, recovery text NOT NULL,
  until_at timestamptz NOT NULL,
  fence bigint NOT NULL, version bigint NOT NULL DEFAULT 1,
  decision text -- JSON
);
-- The highest fence of the rows that were pruned.
CREATE TABLE my_fences (pruned bigint NOT NULL);
INSERT INTO my_fences VALUES (0)`;

/** The engine's clock; in a test, the test's own. */
function clockOf(now: (() => number) | undefined): string {
  if (now === undefined) return "clock_timestamp()";
  return `(timestamptz 'epoch' + ${now()} * interval '1 ms')`;
}

const batch = 1_000;

function statements(clock: string) {
  const micros = `(extract(epoch FROM ${clock}) * 1000000)::bigint`;
  const columns = `key, state, token, fingerprint, reason, recovery, fence,
    version, decision, ${micros} / 1000 AS now_ms,
    ceil(extract(epoch FROM until_at - ${clock}) * 1000) AS remaining_ms`;
  const over = `state IN ('done', 'free') AND until_at <= ${clock}`;
  return {
    add: `INSERT INTO my_keys
      (id, key, state, token, fingerprint, reason, recovery, until_at, fence)
    SELECT $1, $2, $3, $4, $5, $6, $7, ${clock} + $8 * interval '1 ms',
      greatest(${micros}, pruned + 1) FROM my_fences
    ON CONFLICT (id) DO NOTHING RETURNING fence`,

    look: `SELECT ${columns} FROM my_keys WHERE id = $1`,

    // Writes over what was seen only: $12 is a version, or $13 are states.
    write: `UPDATE my_keys SET version = version + 1,
      state = $2, reason = $3, until_at = ${clock} + $4 * interval '1 ms',
      token = coalesce($5, token), fingerprint = coalesce($6, fingerprint),
      recovery = coalesce($7, recovery),
      decision = CASE WHEN $8 THEN decision ELSE $9 END,
      fence = CASE WHEN $10 THEN greatest(fence + 1, ${micros}) ELSE fence END
    WHERE id = $1 AND token = $11 AND (version = $12 OR state = ANY ($13))
    RETURNING fence`,

    list: `SELECT ${columns} FROM my_keys
    WHERE state = $1 AND key > $2 ORDER BY key LIMIT $3`,

    prune: `WITH removed AS (
      DELETE FROM my_keys WHERE ${over} AND id = ANY (ARRAY(
        SELECT id FROM my_keys WHERE ${over}
        LIMIT ${batch} FOR UPDATE SKIP LOCKED))
      RETURNING state, fence
    ), raised AS (
      UPDATE my_fences
      SET pruned = greatest(pruned, (SELECT max(fence) FROM removed))
    ) SELECT state FROM removed`,
  };
}

/** `pool`: for the store only, with a `query_timeout`. `now`: for tests. */
export function createMyStore(
  pool: Pool,
  now?: () => number,
): IdempotencyStore {
  return createIdempotencyStore({ table: new MyTable(pool, now) });
}

class MyTable implements KeyTable {
  readonly engine = "my-postgres";
  readonly #pool: Pool;
  readonly #now: (() => number) | undefined;

  constructor(pool: Pool, now: (() => number) | undefined) {
    this.#pool = pool;
    this.#now = now;
  }

  async add(key: string, row: FirstChange): Promise<number | undefined> {
    const { state, token, fingerprint, reason, recovery } = row;
    const texts = [token, fingerprint, reason].map(encodeText);
    const id = [digestOf(key), encodeText(key)];
    const values = [...id, state, ...texts, recovery, row.durationMs];
    return fenceOf(await this.#send("add", ...values));
  }

  async look(key: string): Promise<SeenRow | undefined> {
    const [row] = await this.#send("look", digestOf(key));
    return row && seenOf(row);
  }

  async write(
    key: string,
    change: KeyChange,
    seen: Seen,
  ): Promise<number | undefined> {
    const { state, reason, durationMs, decision } = change;
    const written = await this.#send(
      "write",
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
    const found = await this.#send("list", state, after, limit + 1);
    return pageOfRows(found, limit, (row) => ({
      key: decodeText(String(row["key"])),
      row: seenOf(row),
    }));
  }

  async prune(): Promise<number> {
    const removed = await this.#send("prune");
    const done = removed.filter((row) => row["state"] === "done").length;
    return removed.length < batch ? done : done + (await this.prune());
  }

  // The pool is the platform's.
  close(): void {}

  async #send(
    name: keyof ReturnType<typeof statements>,
    ...values: unknown[]
  ): Promise<Row[]> {
    const text = statements(clockOf(this.#now))[name];
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
