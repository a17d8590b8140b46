import { type PostgresQueryable, rowsOf, singleRow } from "./queryable.ts";
import { type PostgresTables, type TableNames, resolveTables, tableNames } from "./table-names.ts";

export function checkedTables({ idempotency, nonces, answers }: TableNames): string[] {
  return [idempotency, nonces, answers];
}

/** SQL that restores lost primary keys: ON CONFLICT needs them. A unique index will do, unless partial, deferrable or still being built. */
export const missingKeys = `(SELECT pg_catalog.string_agg(pg_catalog.format('ALTER TABLE %s ADD PRIMARY KEY (%s)', kept.name, kept.col), '; ')
  FROM (VALUES ($1::text, 'key'), ($2::text, 'digest'), ($3::text, 'token')) AS kept (name, col)
  WHERE pg_catalog.to_regclass(kept.name) IS NOT NULL AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    WHERE i.indrelid = pg_catalog.to_regclass(kept.name)::oid AND i.indisunique AND i.indimmediate AND i.indisvalid
      AND i.indpred IS NULL AND i.indnkeyatts = 1 AND a.attname = kept.col)) AS missing_keys`;

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
