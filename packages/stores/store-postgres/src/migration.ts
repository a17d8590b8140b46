import type { Given } from "@countersign/core/door";
import { beginFunction, isFunctionThere } from "./begin-function.ts";
import { explained } from "./errors.ts";
import { type PostgresQueryable, assertQueryable } from "./queryable.ts";
import {
  type PostgresTables,
  type TableNames,
  quoteIdentifier,
  quoteLiteral,
  resolveTables,
  tableNames,
} from "./table-names.ts";
import { workFunctions } from "./work-functions.ts";
import { workTables } from "./work-tables.ts";
import { assertKeys, postgresMissingKeys } from "./table-keys.ts";
import { refuseTablesInPublic } from "./tables-in-public.ts";

/** The version of the tables that this release makes. Leases also work on version 3, transactions on version 4. */
export const postgresSchemaVersion = 5;

/** The oldest version whose processes may still run beside this one's. */
export const oldestSchemaVersion = 3;

/**
 * Returns the SQL that creates the tables or updates those of an earlier release; `migratePostgres` runs the same. One statement, which
 * happens as a whole or not at all. Repeated, it locks nothing. Fails on tables of a later release. Throws an OptionError on a bad name.
 */
export function postgresMigration(tables: PostgresTables = {}): string {
  return migration(resolveTables("postgresMigration", tables), tables.schema);
}

function migration(tables: Tables, given: PostgresTables["schema"]): string {
  const names = tableNames(tables);
  const newer = quoteLiteral(
    `the tables have schema version %, newer than ${postgresSchemaVersion}: upgrade @countersign/store-postgres`,
  );
  // Tests before it makes: CREATE … IF NOT EXISTS needs rights, and an index that is there would still lock out every claim.
  return `DO $countersign$
DECLARE
  found integer;
  oldest_beside integer;
BEGIN
  -- One migration at a time: held until the transaction ends.
  PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(${quoteLiteral(`countersign ${names.version}`)}, 0));

${refuseTablesInPublic(tables, given)}${unlessSchema(tables)}
${unlessThere(names.version, "rp", versionTable(names.version))}
  SELECT version, (pg_catalog.to_jsonb(kept) ->> 'oldest')::integer INTO STRICT found, oldest_beside FROM ${names.version} AS kept WHERE id = 1;
  IF found > ${postgresSchemaVersion} AND oldest_beside <= ${postgresSchemaVersion} THEN
    -- Of a later release, beside whose processes this one's may run.
    RETURN;
  END IF;
  IF found > ${postgresSchemaVersion} THEN
    RAISE EXCEPTION ${newer}, found;
  END IF;

${unlessThere(names.idempotency, "rp", idempotencyTable(tables))}
${unlessColumn(names.idempotency, "decision", addDecision(names))}
${unlessThere(names.nonces, "rp", nonceTable(tables))}
${ifThere(names.sequence, "S", dropSequence(names))}
${workTables(tables)
  .map(([name, sql]) => unlessThere(name, "rp", sql))
  .join("\n")}
${unlessMade(names.begin, names.idempotency, beginFunction(names))}
${workFunctions(names)
  .map(([name, sql]) => unlessMade(name, names.lanes, sql))
  .join("\n")}
${unlessColumn(names.version, "oldest", addOldest(names))}
  IF found < ${postgresSchemaVersion} THEN
    UPDATE ${names.version} SET version = ${postgresSchemaVersion}, oldest = ${oldestSchemaVersion} WHERE id = 1;
  END IF;
END
$countersign$;
`;
}

/** Returns the SQL that `migratePostgresAnswers` runs. Repeated, it locks nothing. Throws an OptionError on a bad name. */
export function postgresAnswersMigration(tables: PostgresTables = {}): string {
  return answersMigration(resolveTables("postgresAnswersMigration", tables), tables.schema);
}

function answersMigration(tables: Tables, given: PostgresTables["schema"]): string {
  const { answers } = tableNames(tables);
  return `DO $countersign$
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(${quoteLiteral(`countersign ${answers}`)}, 0));
${refuseTablesInPublic(tables, given)}${unlessSchema(tables)}
${unlessThere(answers, "rp", answersTable(tables))}
END
$countersign$;
`;
}

function answersTable(tables: Tables): string {
  const { answers } = tableNames(tables);
  return `CREATE TABLE ${answers} (
  -- of the attempt, not of the key: what never ended its key is never found
  token text COLLATE "C" PRIMARY KEY,
  answer bytea NOT NULL,
  until_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX ${indexName(tables, "answers_until")} ON ${answers} (until_at);
`;
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
${condition(isMissing, `CREATE SCHEMA ${schema};\n`)}`,
  );
}

function unlessThere(name: string, kinds: string, statements: string): string {
  return condition(`NOT ${exists(name, kinds)}`, statements);
}

function ifThere(name: string, kinds: string, statements: string): string {
  return condition(exists(name, kinds), statements);
}

function unlessColumn(name: string, column: string, statements: string): string {
  const there = `attrelid = pg_catalog.to_regclass(${quoteLiteral(name)})::oid AND attname = ${quoteLiteral(column)}`;
  const isThere = `EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE ${there} AND NOT attisdropped)`;
  return condition(`NOT ${isThere}`, statements);
}

function unlessMade(name: string, table: string, statements: string): string {
  return condition(`found < ${postgresSchemaVersion} OR NOT ${isFunctionThere(name, table)}`, statements);
}

function exists(name: string, kinds: string): string {
  const isOfKind = kinds.split("").map(quoteLiteral).join(", ");
  return `EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass(${quoteLiteral(name)})::oid AND relkind IN (${isOfKind}))`;
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
INSERT INTO ${version} (id, version, oldest) VALUES (1, ${postgresSchemaVersion}, ${oldestSchemaVersion});
`;
}

function addOldest({ version }: TableNames): string {
  return `-- Of version 4, and last: it locks the table on which processes wait that begin.
ALTER TABLE ${version} ADD COLUMN oldest integer;
`;
}

// Waits for the statements that draw from it, so that none of version 1 gives out a fence once version 2 has begun.
function dropSequence({ sequence }: TableNames): string {
  return `-- Of version 1. Fences are times now, above all that it gave; a process of the release before fails without it.
DROP SEQUENCE ${sequence};
`;
}

// Without defaults: no row is written, and a process of the release before leaves them as they are.
const decisionColumns = [
  'decision text COLLATE "C"',
  "decision_fence bigint",
  "decision_at timestamptz",
  'decision_by text COLLATE "C"',
  'decision_note text COLLATE "C"',
  'decision_reason text COLLATE "C"',
  "reopened_at timestamptz",
  'reopened_by text COLLATE "C"',
  'reopened_note text COLLATE "C"',
];

function addDecision({ idempotency }: TableNames): string {
  const added = decisionColumns.map((column) => `ADD COLUMN ${column}`).join(",\n  ");
  return `-- Of version 3: an operator's last decision. Waits for open transactions, and claims wait behind it.
ALTER TABLE ${idempotency}
  ${added};
`;
}

function idempotencyTable(tables: Tables): string {
  const { idempotency } = tableNames(tables);
  return `CREATE TABLE ${idempotency} (
  key text COLLATE "C" PRIMARY KEY,
  -- free: released, kept for a day for its fence, or for as long as a done one for what an operator has decided
  state text COLLATE "C" NOT NULL CHECK (state IN ('run', 'held', 'done', 'free')),
  token text COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL,
  -- end of the lease (run, held) or of what is remembered (done, free)
  until_at timestamptz NOT NULL,
  -- an operator's last decision: done or released, about which fence, when, by whom, why, and for what the key was held
  ${decisionColumns.join(",\n  ")}
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX ${indexName(tables, "idempotency_until")} ON ${idempotency} (until_at) WHERE state IN ('done', 'free');
CREATE INDEX ${indexName(tables, "idempotency_open")} ON ${idempotency} (state, key) WHERE state IN ('run', 'held');
`;
}

function nonceTable(tables: Tables): string {
  const { nonces } = tableNames(tables);
  return `CREATE TABLE ${nonces} (
  -- SHA-256 of scope and nonce
  digest bytea PRIMARY KEY,
  token text COLLATE "C" NOT NULL,
  until_at timestamptz NOT NULL
)
-- Every row is deleted minutes after it came: what is dead must go before it outweighs what lives.
WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX ${indexName(tables, "nonces_until")} ON ${nonces} (until_at);
`;
}

function indexName({ table }: Tables, suffix: string): string {
  return quoteIdentifier(`${table}_${suffix}`);
}

/**
 * Creates missing tables and updates those of an earlier release, in one transaction under an advisory lock: repeatable, and safe from
 * several processes at once, also through PgBouncer. Where something is missing, the role needs CREATE on the schema, or on the
 * database for a schema, and becomes the owner. Throws on tables of a later release, and an OptionError on a bad name.
 */
export async function migratePostgres(
  queryable: PostgresQueryable,
  tables: PostgresTables = {},
): Promise<void> {
  await migrate("migratePostgres", queryable, { tables, sqlOf: migration });
}

/** Creates the table of `createPostgresAnswers`, as {@link migratePostgres} does. Throws an OptionError. */
export async function migratePostgresAnswers(
  queryable: PostgresQueryable,
  tables: PostgresTables = {},
): Promise<void> {
  await migrate("migratePostgresAnswers", queryable, { tables, sqlOf: answersMigration });
}

async function migrate(
  caller: string,
  queryable: PostgresQueryable,
  { tables, sqlOf }: { readonly tables: PostgresTables; readonly sqlOf: typeof migration },
): Promise<void> {
  assertQueryable(queryable, `${caller}: the first argument must be a Pool or Client of pg, or an object`);
  const resolved = resolveTables(caller, tables);
  // One message without parameters is one transaction. READ COMMITTED: it must see what others created while it waited for the lock.
  const text = `SET TRANSACTION ISOLATION LEVEL READ COMMITTED;\n${sqlOf(resolved, tables.schema)}`;
  try {
    await queryable.query(text);
    // A table that is there is not made anew: what it has lost must be said here, not by the first claim.
    assertKeys(caller, await postgresMissingKeys(queryable, resolved));
  } catch (error) {
    throw explained(caller, `${resolved.schema}.${resolved.table}_*`, error);
  }
}

type Tables = Given<PostgresTables>;
