import { type PoolStores, type PostgresStoresOptions, createStores, migrate } from "@countersign/store-sql";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { Pool, type PoolClient, type PoolConfig, escapeIdentifier, escapeLiteral } from "pg";
import { isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { returnSchema, takeSchema } from "./spare-schemas.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

type PostgresQueryable = PostgresStoresOptions["pool"];

export const dayMs = 86_400_000;

/** A pool that ends with the test. Connections that a test kills are its own business. */
export function connectPool(config: PoolConfig = {}): Pool {
  const pool = new Pool({ connectionString: postgresUrl, max: 10, ...config });
  pool.on("error", () => {});
  afterTest(() => pool.end());
  return pool;
}

/** A client taken out of the pool, back in it with the test. */
export async function connectClient(pool: Pool): Promise<PoolClient> {
  const client = await pool.connect();
  client.on("error", () => {});
  afterTest(() => client.release(true));
  return client;
}

/** A schema of its own with the tables, as long as the test. */
export async function createSchema(pool: Pool, table?: string): Promise<string> {
  if (table === undefined) {
    const spare = await takeSchema(pool);
    afterTest(() => returnSchema(pool, spare));
    return spare;
  }
  const schema = isolatedName("pg");
  dropAfterTest(pool, schema);
  await migrate(pool, { schema, table });
  return schema;
}

export function dropAfterTest(pool: Pool, schema: string): void {
  afterTest(async () => {
    // Clients that a test holds are released later: nothing of theirs may keep the tables locked.
    const holder = escapeLiteral(`%${schema}%`);
    await pool.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND query LIKE ${holder}`,
    );
    await pool.query(`DROP SCHEMA IF EXISTS ${escapeIdentifier(schema)} CASCADE`);
  });
}

/** Stores without a timer, closed with the test. */
export function openStores(
  pool: PostgresQueryable,
  options: Omit<Partial<PostgresStoresOptions>, "pool" | "database">,
): PoolStores {
  const stores = createStores({ pool, pruneIntervalMs: 0, ...options });
  afterTest(() => stores.close());
  return stores;
}

/** Stores on a new schema, with the pool that they use. */
export async function newStores(
  options: Omit<Partial<PostgresStoresOptions>, "pool" | "database"> = {},
  config?: PoolConfig,
): Promise<PoolStores & { pool: Pool; schema: string }> {
  const pool = connectPool(config);
  const schema = await createSchema(pool, options.table);
  return { ...openStores(pool, { schema, ...options }), pool, schema };
}

/** Resolves when so many connections wait for a lock in a statement that names the schema. */
export async function untilBlocked(pool: Pool, schema: string, count = 1): Promise<void> {
  // By what the session has locked: of a long statement the server shows the beginning alone.
  const waiting = `SELECT FROM pg_stat_activity AS activity WHERE wait_event_type = 'Lock' AND EXISTS (
    SELECT FROM pg_locks AS lock JOIN pg_class AS locked ON locked.oid = lock.relation
    WHERE lock.pid = activity.pid AND locked.relnamespace = '${schema}'::regnamespace)`;
  await eventually(async () => ((await pool.query(waiting)).rowCount ?? 0) >= count);
}
