import type {
  IdempotencyListing,
  IdempotencyListQuery,
  IdempotencyRecord,
} from "@countersign/idempotency-guard";
import { keyColumns } from "./idempotency-statements.ts";
import { keyRow, recordOf } from "./key-row.ts";
import type { ResolvedOptions } from "./options.ts";
import type { Row } from "./queryable.ts";
import { clock } from "./statement-parts.ts";
import { decodeKey } from "./stored-key.ts";

const states: readonly string[] = ["run", "held", "done"] satisfies readonly IdempotencyRecord["state"][];
const maxLimit = 1000;

/**
 * The statement of a page: $1 clock, $2 the stored key to begin behind, $3 how many. In the order of the stored keys, so that what
 * others add or remove in the meantime moves no key from one page to another. The state is a literal: an index of some states
 * alone serves no parameter.
 */
export function pageStatement({ names }: ResolvedOptions, state: IdempotencyRecord["state"]): string {
  const live = state === "done" ? ` AND kept.until_at > (SELECT ${clock("$1")})` : "";
  return `SELECT ${keyColumns("$1")} FROM ${names.idempotency} AS kept
WHERE kept.state = '${state}'${live} AND kept.key > $2 ORDER BY kept.key LIMIT $3`;
}

/** The parameters of {@link pageStatement}: one row more than asked for tells whether another page follows. */
export function pageParameters({ cursor, limit }: IdempotencyListQuery, now: string | null): unknown[] {
  return [now, cursor === undefined ? "" : decodeCursor(cursor), limit + 1];
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
    cursor: last === undefined || rows.length <= limit ? undefined : encodeCursor(String(last["key"])),
  };
}

/** Throws a TypeError unless the query is one that a caller can make. */
export function assertListQuery(store: string, { state, cursor, limit }: IdempotencyListQuery): void {
  if (!states.includes(state)) throw new TypeError(`${store}: state must be one of ${states.join(", ")}`);
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit) {
    throw new TypeError(`${store}: limit must be an integer from 1 to ${maxLimit}`);
  }
  // The cursor may have come a long way, over a terminal or a URL: a damaged one must not silently begin elsewhere.
  if (cursor !== undefined && (typeof cursor !== "string" || !isCursor(cursor))) {
    throw new TypeError(`${store}: cursor must be the cursor of the page before`);
  }
}

function encodeCursor(storedKey: string): string {
  return Buffer.from(storedKey, "utf8").toString("base64url");
}

function decodeCursor(cursor: string): string {
  return Buffer.from(cursor, "base64url").toString("utf8");
}

function isCursor(cursor: string): boolean {
  const storedKey = decodeCursor(cursor);
  return storedKey !== "" && !storedKey.includes("\0") && encodeCursor(storedKey) === cursor;
}
