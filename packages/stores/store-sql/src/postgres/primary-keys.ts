import { singleRow } from "../sql/values.ts";
import { type PostgresQueryable, rowsOf } from "./queryable.ts";
import { type PostgresTables, type TableNames, resolveTables, tableNames } from "./table-names.ts";

/** The parameters of {@link missingKeys}, those first that must survive a crash. */
export function checkedTables(names: TableNames): string[] {
  return [...durableTables, "answers" as const].map((table) => names[table]);
}

export const durableTables = ["idempotency", "nonces", "lanes", "tasks", "queues", "newest"] as const;

/**
 * SQL that restores lost primary keys: ON CONFLICT needs them. A unique index will do, unless partial, deferrable or still being built. Table
 * and index are looked for in one snapshot: to_regclass alone also knows a table that was made since.
 */
export const missingKeys = `(SELECT pg_catalog.string_agg(pg_catalog.format('ALTER TABLE %s ADD PRIMARY KEY (%s)', kept.name, kept.col), '; ')
  FROM (VALUES ($1::text, 'key'), ($2::text, 'digest'), ($3::text, 'digest'), ($4::text, 'digest'), ($5::text, 'digest'),
    ($6::text, 'digest'), ($7::text, 'token')) AS kept (name, col)
  WHERE EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass(kept.name)::oid) AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_index AS i
    WHERE i.indrelid = pg_catalog.to_regclass(kept.name)::oid AND i.indisunique AND i.indimmediate AND i.indisvalid
      AND i.indpred IS NULL AND kept.col = (
        SELECT pg_catalog.string_agg(a.attname::text, ', ' ORDER BY part.place)
        FROM pg_catalog.generate_series(1, i.indnkeyatts::integer) AS part (place)
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[part.place - 1]))) AS missing_keys`;

export function assertKeys(caller: string, missing: unknown): void {
  if (typeof missing !== "string") return;
  const what =
    "tables have lost their primary key, as in a restore that ended early, and no key could be claimed";
  throw new Error(`${caller}: ${what}; run: ${missing}`);
}

/** Returns SQL that restores lost primary keys; undefined when no table lacks its key. Throws an OptionError on a bad name. */
export async function postgresMissingKeys(
  queryable: PostgresQueryable,
  tables: PostgresTables = {},
): Promise<string | undefined> {
  const names = tableNames(resolveTables("postgresMissingKeys", tables));
  const rows = rowsOf(await queryable.query(`SELECT ${missingKeys}`, checkedTables(names)));
  const { missing_keys: missing } = singleRow(rows);
  return typeof missing === "string" ? missing : undefined;
}
