import type { Logger } from "pino";
import { Pool } from "pg";
import { failureOf } from "./engine-failure.ts";
import { SettingError } from "./setting-error.ts";
import type { PostgresLocation } from "./store.ts";

/** A pool that has reached its server. Throws a SettingError otherwise, which shows nothing of the URL. */
export async function connectPool(
  { url, variable }: Pick<PostgresLocation, "url" | "variable">,
  logger: Logger,
): Promise<Pool> {
  const pool = new Pool({
    connectionString: url,
    application_name: "countersign platform",
    // For tasks, and as many requests at once as are worth it.
    max: 15,
    keepAlive: true,
    connectionTimeoutMillis: 3_000,
    // For a server that is silent altogether; database.ts has shorter ones.
    query_timeout: 8_000,
  });
  // Without a listener the loss of an idle connection would end the process.
  pool.on("error", (error) => logger.warn({ err: error }, "a connection to PostgreSQL was lost"));
  try {
    await pool.query("SELECT 1");
  } catch (error) {
    await pool.end();
    throw new SettingError(variable, `a PostgreSQL that lets the platform in (${failureOf(error)})`);
  }
  return pool;
}
