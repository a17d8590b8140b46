import type { IdempotencyListQuery, IdempotencyRecord } from "@countersign/idempotency";
import { keyBefore, storedRecords, type pageOf } from "@countersign/idempotency/store";
import { keyColumns } from "./idempotency-statements.ts";
import { storedOf } from "./key-row.ts";
import type { ResolvedPostgresOptions } from "./options.ts";
import { clockOf } from "./statement-parts.ts";
import { decodeKey } from "./stored-key.ts";

/** A page after key $1, of $2 rows, in key order: no key changes pages. The state is a literal: a partial index serves no parameter. */
export function pageStatement(options: ResolvedPostgresOptions, state: IdempotencyRecord["state"]): string {
  const now = clockOf(options)(2);
  const live = state === "done" ? ` AND kept.until_at > (SELECT ${now})` : "";
  return `SELECT kept.key, ${keyColumns(now)} FROM ${options.names.idempotency} AS kept
WHERE kept.state = '${state}'${live} AND kept.key > $1 ORDER BY kept.key LIMIT $2`;
}

/** The parameters of {@link pageStatement}: one row more than asked for tells whether another page follows. Throws on a bad cursor. */
export function pageParameters(store: string, { cursor, limit }: IdempotencyListQuery): unknown[] {
  return [keyBefore(store, cursor), limit + 1];
}

/** Reads the rows of {@link pageStatement}. A done key can end between the condition and the column: each reads the clock. */
export const pageReading: Parameters<typeof pageOf>[2] = {
  keyOf: decodeKey,
  recordOf: (row) => storedRecords.recordOf(storedOf(row)),
};
