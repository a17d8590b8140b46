import type { Database } from "@countersign/idempotency";
import type { Row } from "@countersign/idempotency/store";
import type { Expired } from "../sql/engine.ts";
import { fragment, joined, raw, bound, type Sql } from "../sql/sql.ts";
import { integerOf } from "../sql/values.ts";
import type { TableNames } from "./table-names.ts";
import { storedBytes } from "./values.ts";

interface Removal<Tx> {
  readonly database: Database<Tx>;
  readonly names: TableNames;
  readonly now: Sql;
  readonly batchSize: number;
  /** Begins each statement. */
  readonly bound: string;
}

/** Removes a batch of rows in an open transaction. Rows that are locked are in use: left for the next time. */
export async function removeRows<Tx>(
  tx: Tx,
  { table, isExpired, areKeys }: Expired,
  { database, names, now, batchSize, bound: wait }: Removal<Tx>,
): Promise<readonly Row[]> {
  const send = ({ text, values }: Sql): Promise<readonly Row[]> =>
    database.query(tx, `${wait}${text}`, values);
  const columns = raw(areKeys === true ? "digest, state, fence" : "digest");
  const rows = await send(fragment`SELECT ${columns} FROM ${raw(table)} FORCE INDEX (pruning)
WHERE ${isExpired(now)} LIMIT ${raw(String(batchSize))} FOR UPDATE SKIP LOCKED`);
  if (rows.length === 0) return rows;
  if (areKeys === true) {
    const highest = bound(Math.max(...rows.map((row) => integerOf(row["fence"]))));
    await send(
      fragment`UPDATE ${raw(names.schema)} SET highest_fence = GREATEST(highest_fence, ${highest}) WHERE id = 1`,
    );
  }
  const found = rows.map(({ digest }, index) => {
    const value = bound(storedBytes(digest));
    return index === 0 ? fragment`SELECT ${value} AS digest` : fragment`SELECT ${value}`;
  });
  // Each by its key. By a list of them a server may walk through the whole table, and would wait for rows that are in use.
  await send(fragment`DELETE gone FROM (${joined(found, " UNION ALL ")}) AS found
STRAIGHT_JOIN ${raw(table)} AS gone FORCE INDEX (PRIMARY) ON gone.digest = found.digest`);
  return rows;
}
