// Servers for a benchmark alone, and stores on them. Undefined where the binaries are missing: run.mjs says what was left out.
import { createStores, migrate } from "@countersign/store-sql";
import { Pool } from "pg";
import { createClient } from "redis";
import { startPostgresServer } from "../test/support/servers/postgres-server.mjs";
import { startRedisServer } from "../test/support/servers/redis-server.mjs";

// What a small machine for a database has; durability and autovacuum stay as PostgreSQL ships them.
const settings = { shared_buffers: "256MB", max_wal_size: "4GB", checkpoint_timeout: "15min" };

/** A PostgreSQL with the stores' tables and a pool; `stores(options)` opens further stores. */
export async function startPostgres() {
  const server = await startPostgresServer({ settings });
  if (server === undefined) return undefined;
  // Connections that are still closing when the server stops say so.
  const pool = new Pool({
    connectionString: server.url,
    max: 16,
    options: "-c search_path=countersign,public",
  });
  pool.on("error", () => {});
  const opened = [];
  await migrate(pool);
  const stores = (options) => {
    const both = createStores({ pool, pruneIntervalMs: 0, ...options });
    opened.push(both);
    return both;
  };
  return {
    pool,
    stores,
    /** Stores on tables of their own. */
    async storesIn(schema) {
      await migrate(pool, { schema });
      return stores({ schema });
    },
    async close() {
      for (const both of opened) both.close();
      await pool.end();
      await server.close();
    },
  };
}

/** A Redis that keeps nothing on the disk, and a client. */
export async function startRedis() {
  const server = await startRedisServer();
  if (server === undefined) return undefined;
  const client = createClient({ url: server.url });
  await client.connect();
  return {
    client,
    async close() {
      await client.close();
      await server.close();
    },
  };
}
