import { assertKnownOptions } from "@countersign/guard";
import { explained } from "./errors.ts";
import { type PostgresQueryable, assertQueryable } from "./queryable.ts";
import {
  type PostgresTables,
  quoteIdentifier,
  quoteLiteral,
  resolveTables,
  tableNames,
} from "./table-names.ts";

/** The version of the tables that this release reads and writes. */
export const postgresSchemaVersion = 1;

/**
 * The SQL that creates the tables, for those who keep migrations by hand; `migratePostgres` runs the same. It can be repeated, and
 * fails on tables of a later release. Run it in one transaction. Throws a TypeError on a bad name.
 */
export function postgresMigration(tables: PostgresTables = {}): string {
  return migration(checkedTables("postgresMigration", tables));
}

function migration(tables: Tables): string {
  const { schema, table } = tables;
  const names = tableNames(tables);
  const index = (suffix: string): string => quoteIdentifier(`${table}_${suffix}`);
  const newer = quoteLiteral(
    `the tables have schema version %, newer than ${postgresSchemaVersion}: upgrade @countersign/store-postgres`,
  );
  return `-- One migration at a time: held until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended(${quoteLiteral(`countersign ${names.version}`)}, 0));

DO $countersign$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = ${quoteLiteral(schema)}) THEN
    CREATE SCHEMA ${names.schema};
  END IF;
END
$countersign$;

CREATE TABLE IF NOT EXISTS ${names.version} (
  id integer PRIMARY KEY CHECK (id = 1),
  version integer NOT NULL
);
INSERT INTO ${names.version} (id, version) VALUES (1, ${postgresSchemaVersion}) ON CONFLICT (id) DO NOTHING;

DO $countersign$
DECLARE
  found integer;
BEGIN
  SELECT version INTO STRICT found FROM ${names.version} WHERE id = 1;
  IF found > ${postgresSchemaVersion} THEN
    RAISE EXCEPTION ${newer}, found;
  END IF;
END
$countersign$;

-- The fences of all keys: they grow, also over what was pruned. No cache: a session would give out its own ones late.
CREATE SEQUENCE IF NOT EXISTS ${quoteIdentifier(schema)}.${index("fences")} AS bigint CACHE 1 NO CYCLE;

CREATE TABLE IF NOT EXISTS ${names.idempotency} (
  key text COLLATE "C" PRIMARY KEY,
  -- free: released, kept for a day for its fence
  state text COLLATE "C" NOT NULL CHECK (state IN ('run', 'held', 'done', 'free')),
  token text COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL,
  -- end of the lease (run, held) or of what is remembered (done, free)
  until_at timestamptz NOT NULL
);
ALTER TABLE ${names.idempotency} SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX IF NOT EXISTS ${index("idempotency_until")} ON ${names.idempotency} (until_at)
  WHERE state IN ('done', 'free');
CREATE INDEX IF NOT EXISTS ${index("idempotency_open")} ON ${names.idempotency} (state, key)
  WHERE state IN ('run', 'held');

CREATE TABLE IF NOT EXISTS ${names.nonces} (
  -- SHA-256 of scope and nonce
  digest bytea PRIMARY KEY,
  token text COLLATE "C" NOT NULL,
  until_at timestamptz NOT NULL
);
-- Every row is deleted minutes after it came: what is dead must go before it outweighs what lives.
ALTER TABLE ${names.nonces} SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX IF NOT EXISTS ${index("nonces_until")} ON ${names.nonces} (until_at);
`;
}

/**
 * Creates what is missing of the tables, in one transaction and behind an advisory lock: repeatable, and safe when several
 * processes do it at once, also behind PgBouncer. The role needs CREATE on the schema, and becomes the owner. Throws when the
 * tables are of a later release, and a TypeError on a bad name.
 */
export async function migratePostgres(
  queryable: PostgresQueryable,
  tables: PostgresTables = {},
): Promise<void> {
  assertQueryable(
    queryable,
    "migratePostgres: the first argument must be a Pool or Client of pg, or an object",
  );
  const resolved = checkedTables("migratePostgres", tables);
  // Without parameters, so that it travels as one message: the server runs it as one transaction, and an error leaves none open.
  // What others created while it waited for the lock must be visible, whatever the default isolation is.
  const text = `SET TRANSACTION ISOLATION LEVEL READ COMMITTED;\n${migration(resolved)}`;
  try {
    await queryable.query(text);
  } catch (error) {
    throw explained("migratePostgres", `${resolved.schema}.${resolved.table}_*`, error);
  }
}

type Tables = ReturnType<typeof resolveTables>;

function checkedTables(factory: string, tables: PostgresTables): Tables {
  assertKnownOptions(factory, tables, ["schema", "table"]);
  return resolveTables(factory, tables);
}
