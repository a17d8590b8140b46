import { createStores, migrate, postgresMigration, postgresSchemaVersion } from "@countersign/store-sql";
import { createPostgresWork, isPostgres, postgresMissingKeys } from "@countersign/store-sql/internal";
import type { Client } from "pg";
import { inWordsOfFlags } from "../command-io.ts";
import type { Row } from "../doctor/findings.ts";
import { loadDriver } from "../load-package.ts";
import { sqlEngine, type Fact } from "./sql-engine.ts";
import { goodbyeMs, openTimeoutMs, withinTime } from "./store-failure.ts";
import { refusingUrl, type StoreLocation } from "./store-target.ts";

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

export const postgresEngine = sqlEngine<Client>({
  schemaVersion: postgresSchemaVersion,
  tables: ({ schema, table }) => inWordsOfFlags(() => postgresMigration({ schema, table })),
  migrate: migrate,
  connect,
  stores(client, options) {
    const stores = createStores({ pool: client, ...options });
    const work = createPostgresWork({ pool: client, ...options });
    return {
      ...stores,
      work,
      close() {
        work.close();
        stores.close();
      },
    };
  },
  versionTable: ({ schema, table }, client) =>
    [schema, `${table}_schema`].map((name) => client.escapeIdentifier(name)).join("."),
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
  async tableDoubts(client, names) {
    const missing = await postgresMissingKeys(client, names);
    if (missing === undefined) return [];
    return [["tables-without-key", `tables have lost their primary key: ${missing}`]];
  },
});

async function connect(location: StoreLocation, timeoutMs: number) {
  const { default: pg } = await loadDriver(["pg"], () => import("pg"));
  const config = {
    connectionString: location.address,
    connectionTimeoutMillis: openTimeoutMs,
    application_name: "countersign",
    // Set on the client: a pooler before the server refuses session settings.
    query_timeout: timeoutMs,
  };
  const client = refusingUrl(location, () => new pg.Client(config));
  // A broken connection fails the running or next query; without a listener it would end the process.
  client.on("error", () => {});
  await client.connect();
  return {
    connection: client,
    query: async (text: string, values: readonly string[]) =>
      (await client.query<Record<string, unknown>>(text, [...values])).rows,
    async close(): Promise<void> {
      await withinTime(goodbyeMs, client.end(), (why) => new Error(why)).catch(() => {});
      // Missing in the types of pg. The process ends without a server that hangs.
      const { unref }: { readonly unref?: unknown } = client as object;
      if (typeof unref === "function") Reflect.apply(unref, client, []);
    },
  };
}
