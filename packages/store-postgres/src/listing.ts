import type {
  IdempotencyListing,
  IdempotencyListQuery,
  IdempotencyRecord,
} from "@countersign/idempotency-guard";
import { cursorBehind, keyBefore } from "@countersign/store-core";
import { keyColumns } from "./idempotency-statements.ts";
import { keyRow, recordOf } from "./key-row.ts";
import type { ResolvedOptions } from "./options.ts";
import type { Row } from "./queryable.ts";
import { clock } from "./statement-parts.ts";
import { decodeKey } from "./stored-key.ts";

/**
 * The statement of a page: $1 clock, $2 the stored key to begin behind, $3 how many. In the order of the stored keys, so that what
 * others add or remove in the meantime moves no key from one page to another. The state is a literal: an index of some states
 * alone serves no parameter.
 */
export function pageStatement({ names }: ResolvedOptions, state: IdempotencyRecord["state"]): string {
  const live = state === "done" ? ` AND kept.until_at > (SELECT ${clock("$1")})` : "";
  return `SELECT kept.key, ${keyColumns("$1")} FROM ${names.idempotency} AS kept
WHERE kept.state = '${state}'${live} AND kept.key > $2 ORDER BY kept.key LIMIT $3`;
}

/** The parameters of {@link pageStatement}: one row more than asked for tells whether another page follows. Throws on a bad cursor. */
export function pageParameters(
  store: string,
  { cursor, limit }: IdempotencyListQuery,
  now: string | null,
): unknown[] {
  return [now, keyBefore(store, cursor), limit + 1];
}

/** The page of these rows. */
export function pageOf(rows: readonly Row[], limit: number): IdempotencyListing {
  const listed = rows.slice(0, limit);
  const last = listed.at(-1);
  return {
    entries: listed.flatMap((row) => {
      // A done key can end between the condition and the column, which read the clock each for itself.
      const record = recordOf(keyRow(row));
      return record === undefined ? [] : [{ key: decodeKey(String(row["key"])), record }];
    }),
    cursor: last === undefined || rows.length <= limit ? undefined : cursorBehind(String(last["key"])),
  };
}
