import type { SqlDialect } from "../sql-dialect.ts";

/** One file is one schema, the process is the clock, and a writer is alone: see withImmediateTransaction. */
export const sqliteDialect: SqlDialect = { schema: "", now: "?", skipLocked: "" };
