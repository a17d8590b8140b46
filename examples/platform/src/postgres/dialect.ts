import { escapeIdentifier } from "pg";
import type { SqlDialect } from "../sql-dialect.ts";

/**
 * The clock is the server's: the processes that share a database would disagree about leases. In place of it tests bind a time.
 * It is one that stands still for a statement, or no index could be used for it.
 */
export function postgresDialect(schema: string): SqlDialect {
  return {
    schema: `${escapeIdentifier(schema)}.`,
    now: "coalesce(?::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)",
    skipLocked: "FOR UPDATE SKIP LOCKED",
  };
}

/** A time in milliseconds since 1970; null: the server's. */
export type Now = () => number | null;
