import type { Given } from "@countersign/core/internal";
import { keyTables, ofAttempt, type KeyTableForm } from "../keys/key-schema.ts";
import { tablesSql, type TableSql } from "../sql/tables.ts";
import { taskTables } from "../work/task-table.ts";
import { singleRow } from "../sql/values.ts";
import { dialect } from "./dialect.ts";
import { assertEngine, readEngine } from "./engine-check.ts";
import { explained } from "./errors.ts";
import { type PostgresQueryable, assertQueryable, rowsOf } from "./queryable.ts";
import {
  type PostgresTables,
  quoteIdentifier,
  quoteLiteral,
  resolveTables,
  tableNames,
} from "./table-names.ts";
import { assertKeys, postgresMissingKeys } from "./primary-keys.ts";

/** The version of the tables that this release makes, reads and writes. */
export const postgresSchemaVersion = 3;

/**
 * Returns the SQL that creates what is missing; `migrate()` runs the same. One statement, which happens as a whole or not at all.
 * Repeated, it locks nothing. Leaves tables of a later release that takes this one beside it, and fails on others. Throws an OptionError on
 * a bad name.
 */
export function postgresMigration(tables: PostgresTables = {}): string {
  return migration(resolveTables("postgresMigration", tables));
}

function migration(tables: Tables): string {
  const names = tableNames(tables);
  const ours = postgresSchemaVersion;
  // Tests before it makes: CREATE … IF NOT EXISTS needs rights, and an index that is there would still lock out every claim.
  return `DO $countersign$
DECLARE
  found integer;
  oldest_beside integer;
BEGIN
  -- One migration at a time: held until the transaction ends.
  PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(${quoteLiteral(`countersign ${names.version}`)}, 0));

${unlessSchema(tables)}
${unlessThere(names.version, versionTable(names.version))}
  SELECT version, oldest INTO STRICT found, oldest_beside FROM ${names.version} WHERE id = 1;
  IF found > ${ours} AND oldest_beside <= ${ours} THEN
    -- A later release made them, and this one's processes may run beside its own.
    RETURN;
  END IF;
  IF found <> ${ours} THEN
    RAISE EXCEPTION 'the tables have schema version %, this release makes ${ours}: %', found,
      CASE WHEN found > ${ours} THEN 'upgrade @countersign/store-sql' ELSE 'no release made such tables' END;
  END IF;

${otherTables(tables)
  .map(({ name, statements }) => unlessThere(name, statements.map((statement) => `${statement};\n`).join("")))
  .join("\n")}END
$countersign$;
`;
}

const options = {
  idempotency: " WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)",
  nonces: `
-- Every row is deleted minutes after it came: what is dead must go before it outweighs what lives.
WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000)`,
  answers: " WITH (autovacuum_vacuum_scale_factor = 0.02)",
  // Rows of lanes come and go with their tasks, and each claim writes them.
  lanes: " WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000)",
  tasks: " WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)",
  queues: "",
  newest: "",
} as const;

const keyForm: KeyTableForm = {
  ids: {
    idempotency: [["key", "text", "NOT NULL PRIMARY KEY"]],
    nonces: [["digest", "digest", "NOT NULL PRIMARY KEY", "SHA-256 of scope and nonce"]],
    answers: [["token", "text", "NOT NULL PRIMARY KEY", ofAttempt]],
  },
  until: "until_at",
  order: "key",
  suffixes: { until: "until", open: "open" },
};

function otherTables(tables: Tables): readonly TableSql[] {
  const names = tableNames(tables);
  const all = { ...keyTables(keyForm), ...taskTables };
  return tablesSql<keyof typeof all>(all, {
    dialect,
    names,
    create: "CREATE TABLE",
    createIndex: (suffix) => `CREATE INDEX ${indexName(tables, suffix)}`,
    indexed: (table) => names[table],
    options: (table) => options[table],
  });
}

const noSchema =
  'the schema % is missing, and the role may not create it: have the owner of the database run CREATE SCHEMA % AUTHORIZATION %, or give schema: "public" ' +
  "if the role may create tables there";

function unlessSchema(tables: Tables): string {
  const { schema } = tableNames(tables);
  const isMissing = `NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = ${quoteLiteral(tables.schema)})`;
  const name = quoteLiteral(schema);
  return condition(
    isMissing,
    `IF NOT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') THEN
  RAISE EXCEPTION ${quoteLiteral(noSchema)}, ${name}, ${name}, pg_catalog.quote_ident(current_user);
END IF;
-- Migrations of other tables may make it too.
PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(${quoteLiteral(`countersign ${schema}`)}, 0));
${condition(isMissing, `CREATE SCHEMA ${schema};\n`).replaceAll(/^ {2}/gm, "")}`,
  );
}

function unlessThere(name: string, statements: string): string {
  const isIt = `oid = pg_catalog.to_regclass(${quoteLiteral(name)})::oid AND relkind IN ('r', 'p')`;
  return condition(`NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE ${isIt})`, statements);
}

function condition(test: string, statements: string): string {
  const indented = statements.replaceAll(/^(?=.)/gm, "    ");
  return `  IF ${test} THEN
${indented}  END IF;
`;
}

function versionTable(version: string): string {
  return `CREATE TABLE ${version} (
  id integer PRIMARY KEY CHECK (id = 1),
  version integer NOT NULL,
  -- the oldest version whose processes may run beside those of this one
  oldest integer
);
INSERT INTO ${version} (id, version, oldest) VALUES (1, ${postgresSchemaVersion}, ${postgresSchemaVersion});
`;
}

function indexName({ table }: Tables, suffix: string): string {
  return quoteIdentifier(`${table}_${suffix}`);
}

/**
 * Creates what is missing, in one transaction under an advisory lock: repeatable, and safe from several processes at once, also through
 * PgBouncer. Where something is missing, the role needs CREATE on the schema, or on the database for a schema, and becomes the owner. Leaves
 * tables of a later release that takes this one beside it, and throws on others. Throws an OptionError on a bad name. `together` runs
 * statements in one transaction; by default as one message without parameters, which is one.
 */
export async function migratePostgres(
  queryable: PostgresQueryable,
  tables: PostgresTables = {},
  together: (statements: readonly string[]) => Promise<unknown> = (statements) =>
    queryable.query(statements.join(";\n")),
): Promise<void> {
  const caller = "migrate";
  assertQueryable(queryable, `${caller}: the first argument must be a Pool or Client of pg, or an object`);
  const resolved = resolveTables(caller, tables);
  try {
    assertEngine(caller, singleRow(rowsOf(await queryable.query(readEngine))));
    // READ COMMITTED: it must see what others created while it waited for the lock.
    await together(["SET TRANSACTION ISOLATION LEVEL READ COMMITTED", migration(resolved)]);
    // A table that is there is not made anew: what it has lost must be said here, not by the first claim.
    assertKeys(caller, await postgresMissingKeys(queryable, resolved));
  } catch (error) {
    throw explained(caller, tableNames(resolved), error);
  }
}

type Tables = Given<PostgresTables>;
