import { createStores, migrate, postgresMigration, postgresSchemaVersion } from "@countersign/store-sql";
import { createPostgresWork, isPostgres, postgresMissingKeys } from "@countersign/store-sql/internal";
import { inWordsOfFlags } from "../command-io.ts";
import type { Row } from "../doctor/findings.ts";
import { connectPostgres, type PostgresSession } from "./postgres-drivers.ts";
import { sqlEngine, type Fact } from "./sql-engine.ts";

const serverQuery = `SELECT version() AS engine, current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding,
  current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
  current_setting('synchronous_commit') AS synchronous_commit, pg_is_in_recovery() AS standby,
  count(*) FILTER (WHERE relpersistence <> 'p')::text AS unlogged,
  (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text AS now_ms
  FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE relkind = 'r' AND relname LIKE $1 AND nspname = $2`;

const madeQuery = `SELECT tablename::text AS name FROM pg_catalog.pg_tables
  WHERE schemaname = $1 AND starts_with(tablename, $2) ORDER BY 1`;

export const postgresRows: readonly Row<Fact>[] = [
  [
    "postgres-fsync",
    (fact) =>
      fact("fsync") !== "on" && "fsync is off: after a crash of the machine, paid keys can be forgotten",
  ],
  [
    "postgres-full-page-writes",
    (fact) => fact("full_page_writes") !== "on" && "full_page_writes is off: a crash can leave half a page",
  ],
  [
    "postgres-synchronous-commit",
    (fact) =>
      fact("synchronous_commit") === "off" &&
      "synchronous_commit is off: the stores turn it on for their own statements, and nobody for yours",
  ],
  [
    "postgres-standby",
    (fact) => fact("standby") === "true" && "the server is a standby, which takes no claim",
  ],
  [
    "postgres-encoding",
    (fact) =>
      fact("encoding") !== "UTF8" &&
      `the database has the encoding ${fact("encoding")}, in which two keys can be one`,
  ],
  [
    "postgres-other",
    (fact) =>
      !isPostgres(fact("engine")) && `the server is ${fact("engine")}, on which the stores were never tried`,
  ],
  ["postgres-old", (fact) => Number(fact("version")) < 130_000 && "PostgreSQL is older than 13"],
  ["tables-unlogged", (fact) => fact("unlogged") !== "0" && "tables are unlogged: a crash empties them"],
];

export const postgresEngine = sqlEngine<PostgresSession>({
  schemaVersion: postgresSchemaVersion,
  tables: ({ schema, table }) => inWordsOfFlags(() => postgresMigration({ schema, table })),
  migrate: migrate,
  connect: connectPostgres,
  stores(session, options) {
    const stores = createStores({ pool: session, ...options });
    const work = createPostgresWork({ pool: session, ...options });
    return {
      ...stores,
      work,
      close() {
        work.close();
        stores.close();
      },
    };
  },
  versionTable: ({ schema, table }) =>
    [schema, `${table}_schema`].map((name) => `"${name.replaceAll('"', '""')}"`).join("."),
  placeOf: ({ schema, table }) => `${schema}.${table}_*`,
  placesQuery: `SELECT place FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = relnamespace,
    concat(nspname, '.', left(relname, -length('idempotency')), '*') AS place
  WHERE relkind IN ('r', 'p') AND relname LIKE '%\\_idempotency' AND place <> $1
    AND EXISTS (SELECT FROM pg_catalog.pg_class AS other
      WHERE other.relnamespace = n.oid AND other.relname = left(c.relname, -length('idempotency')) || 'schema')
  ORDER BY place LIMIT 5`,
  madeQuery: ({ schema, table }) => [madeQuery, [schema, `${table}_`]],
  noSuchTable: "42P01",
  serverQuery: ({ schema, table }) => [serverQuery, [`${table}\\_%`, schema]],
  rows: postgresRows,
  async tableDoubts(session, names) {
    const missing = await postgresMissingKeys(session, names);
    if (missing === undefined) return [];
    return [["tables-without-key", `tables have lost their primary key: ${missing}`]];
  },
});
