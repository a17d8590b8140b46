import type { Expired } from "../sql/engine.ts";
import { fragment, raw, type Sql } from "../sql/sql.ts";
import { floorKey } from "./statement-parts.ts";

/**
 * Removes a batch of rows, and gives something of each of them. Finds the rows by address: no plan walks the table. Asks twice whether a row has
 * expired, as a live row of another partition can have the same address.
 */
export function removal({ table, until, isExpired, areKeys }: Expired, now: Sql, batchSize: number): Sql {
  // Read once for all rows.
  const expired = isExpired(fragment`(SELECT ${now})`);
  const [from, columns] = [raw(table), raw(areKeys === true ? "state, fence" : "1 AS removed")];
  const removed = fragment`DELETE FROM ${from} WHERE ${expired} AND ctid = ANY (ARRAY(
  SELECT ctid FROM ${from} WHERE ${expired} ORDER BY ${raw(until)} LIMIT ${raw(String(batchSize))} FOR UPDATE SKIP LOCKED)) RETURNING ${columns}`;
  return areKeys === true ? withFloor(from, removed) : removed;
}

/** The same of keys. One commit keeps their highest fence in the floor. */
function withFloor(table: Sql, removed: Sql): Sql {
  return fragment`WITH removed AS (${removed}),
raised AS (
  INSERT INTO ${table} AS kept (key, state, token, fence, fingerprint, reason, recovery, until_at, version)
  SELECT ${raw(floorKey)}, 'free', '', max(fence), '', 'highest fence of a pruned key', 'hold', '9999-12-31 00:00:00+00', 1 FROM removed HAVING count(*) > 0
  ON CONFLICT (key) DO UPDATE SET fence = greatest(kept.fence, excluded.fence), version = kept.version + 1)
SELECT state FROM removed`;
}
