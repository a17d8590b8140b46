// Schemas with the tables, used again by the tests of one file: making one takes longer than most tests.
import { migrate } from "@countersign/store-sql";
import { isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { afterAll } from "@jest/globals";
import { Client, type Pool, escapeIdentifier, escapeLiteral } from "pg";

const rowTables = ["idempotency", "nonces", "answers", "lanes", "tasks", "queues", "newest"];

/** What each schema had when it was made. */
const made = new Map<string, string>();
/** By server and database. */
const spare = new Map<string, string[]>();

afterAll(async () => {
  if (spare.size === 0) return;
  const client = new Client({ connectionString: postgresUrl });
  await client.connect();
  // A server of the file's own goes with its schemas.
  const schemas = spare.get(await placeOf(client)) ?? [];
  await client.query(schemas.map(dropping).join("; "));
  await client.end();
});

async function placeOf(server: Pick<Client, "query">): Promise<string> {
  const { rows } = await server.query<{ place: string }>(
    "SELECT current_setting('port') || ' ' || current_database() AS place",
  );
  return rows[0]?.place ?? "";
}

/** A schema with the tables, empty. */
export async function takeSchema(pool: Pool): Promise<string> {
  const another = spare.get(await placeOf(pool))?.pop();
  if (another !== undefined) return another;
  const schema = isolatedName("pg");
  await migrate(pool, { schema });
  made.set(schema, await describeSchema(pool, schema));
  return schema;
}

/** Empties the schema for the next test, or drops it when the test has changed more than rows. */
export async function returnSchema(pool: Pool, schema: string): Promise<void> {
  // Clients that a test holds are released later: nothing of theirs may keep the tables locked.
  await pool.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE state LIKE 'idle in transaction%' AND query LIKE ${escapeLiteral(`%${schema}%`)}`,
  );
  if (!(await isEmptied(pool, schema))) {
    await pool.query(dropping(schema));
    return;
  }
  const place = await placeOf(pool);
  spare.set(place, [...(spare.get(place) ?? []), schema]);
}

async function isEmptied(pool: Pool, schema: string): Promise<boolean> {
  try {
    const { rows } = await pool.query<{ name: string }>(
      `SELECT relname AS name FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p')
AND relname NOT LIKE 'countersign\\_%'`,
      [schema],
    );
    const dropped = rows.map(({ name }) => `DROP TABLE ${schema}.${escapeIdentifier(name)} CASCADE`);
    const emptied = rowTables.map((table) => `DELETE FROM ${schema}.countersign_${table}`);
    await pool.query(["SET LOCAL lock_timeout = '2s'", ...dropped, ...emptied].join("; "));
    return (await describeSchema(pool, schema)) === made.get(schema);
  } catch {
    return false;
  }
}

/** Everything but the rows of {@link rowTables}, as one text. */
async function describeSchema(pool: Pool, schema: string): Promise<string> {
  const { rows } = await pool.query<{ everything: string }>(
    `WITH own AS (SELECT * FROM pg_class WHERE relnamespace = $1::regnamespace)
SELECT string_agg(what, chr(10) ORDER BY what) AS everything FROM (
  SELECT concat_ws(' ', relname, relkind, relpersistence, reloptions::text, relacl::text, relowner, relrowsecurity) FROM own
  UNION ALL SELECT concat_ws(' ', relname, attname, atttypid, attnotnull, attcollation, attisdropped)
    FROM pg_attribute JOIN own ON own.oid = attrelid WHERE attnum > 0
  UNION ALL SELECT concat_ws(' ', relname, indisunique, indisvalid, indimmediate, indkey)
    FROM pg_index JOIN own ON own.oid = indexrelid
  UNION ALL SELECT concat_ws(' ', relname, conname, contype) FROM pg_constraint JOIN own ON own.oid = conrelid
  UNION ALL SELECT concat_ws(' ', relname, tgname) FROM pg_trigger JOIN own ON own.oid = tgrelid WHERE NOT tgisinternal
  UNION ALL SELECT concat_ws(' ', proname, md5(prosrc)) FROM pg_proc WHERE pronamespace = $1::regnamespace
  UNION ALL SELECT nspacl::text FROM pg_namespace WHERE oid = $1::regnamespace
  UNION ALL SELECT concat_ws(' ', version, oldest) FROM ${schema}.countersign_schema
) AS parts (what)`,
    [schema],
  );
  return rows[0]?.everything ?? "";
}

function dropping(schema: string): string {
  return `DROP SCHEMA IF EXISTS ${schema} CASCADE`;
}
