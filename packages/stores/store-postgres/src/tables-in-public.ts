import type { Given } from "@countersign/core/door";
import { type PostgresQueryable, rowsOf, singleRow } from "./queryable.ts";
import { type PostgresTables, quoteIdentifier, quoteLiteral, resolveTables } from "./table-names.ts";

const suffixes = ["answers", "idempotency", "lanes", "newest", "nonces", "queues", "schema", "tasks"];

/**
 * SQL for a text: what moves tables of this prefix from `public`, where releases before had them by default, to the schema. NULL if none
 * is there, or if the schema was `given`. Reads the catalog, which roles without rights on `public` see too, and no search_path.
 */
export function movesFromPublic(
  { schema, table }: Given<PostgresTables>,
  given: PostgresTables["schema"],
): string {
  if (given !== undefined) return "NULL::text";
  const to = quoteIdentifier(schema);
  const names = suffixes.map((suffix) => quoteLiteral(`${table}_${suffix}`)).join(", ");
  const alter = quoteLiteral(`; ALTER TABLE "public".%I SET SCHEMA ${to}`);
  // The body of the function names the tables where they were: the migration makes another one.
  const end = quoteLiteral(`; DROP FUNCTION IF EXISTS "public".${quoteIdentifier(`${table}_begin`)}(text)`);
  return `(SELECT ${quoteLiteral(`CREATE SCHEMA IF NOT EXISTS ${to}`)} || pg_catalog.string_agg(pg_catalog.format(${alter}, c.relname), '' ORDER BY c.relname) || ${end}
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND c.relname IN (${names}))`;
}

const before =
  'tables of this prefix stand in the schema public, and others would not know their paid keys; keep them with schema: "public" ' +
  "(--schema public), or stop the processes that use them there and run: ";
const after = '; then countersign migrate. If they are of another platform, give schema: "countersign"';

/** For a DO block: fails as {@link assertNoneInPublic} does. */
export function refuseTablesInPublic(tables: Given<PostgresTables>, given: PostgresTables["schema"]): string {
  if (given !== undefined) return "";
  const moves = movesFromPublic(tables, given);
  return `  DECLARE
    moves CONSTANT text := ${moves};
  BEGIN
    IF moves IS NOT NULL THEN
      RAISE EXCEPTION '%', ${quoteLiteral(before)} || moves || ${quoteLiteral(after)};
    END IF;
  END;
`;
}

/** Throws an Error when `moves`, as read by {@link movesFromPublic}, is a text. */
export function assertNoneInPublic(caller: string, moves: unknown): void {
  if (typeof moves === "string") throw new Error(`${caller}: ${before}${moves}${after}`);
}

/**
 * Returns SQL that moves tables from `public` to the default schema; undefined when `tables` names a schema, or none stands there. Throws an
 * OptionError on a bad name.
 */
export async function postgresMovesFromPublic(
  queryable: PostgresQueryable,
  tables: PostgresTables = {},
): Promise<string | undefined> {
  const moves = movesFromPublic(resolveTables("postgresMovesFromPublic", tables), tables.schema);
  const row = singleRow(rowsOf(await queryable.query(`SELECT ${moves} AS moves`)));
  return typeof row["moves"] === "string" ? row["moves"] : undefined;
}
