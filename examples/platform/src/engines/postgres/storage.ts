import { fromPg } from "@countersign/store-sql/pg";
import { reasonOf, SettingError, type PostgresLocation } from "@countersign/example-settings";
import { connectPool } from "@countersign/example-settings/postgres-pool";
import { createStores, migrate } from "@countersign/store-sql";
import type { Pool, PoolClient } from "pg";
import type { Logger } from "pino";
import { allStatements, tableNames, tables } from "../../ledgers/tables.ts";
import type { PlatformStorage } from "../storage.ts";
import { ledgerDatabase, numbered, postgresDialect, query } from "./database.ts";

/**
 * Connects and creates the tables that are missing. Everything is in one database: a payout, its key, its nonce and its tasks are one
 * transaction. Throws a SettingError.
 */
export async function openPostgresStorage(
  location: PostgresLocation,
  logger: Logger,
): Promise<PlatformStorage> {
  const { schema, storesSchema, variable } = location;
  const pool = await connectPool(location, logger);
  const library = fromPg<PoolClient>(pool);
  const stores = createStores({ database: library, schema: storesSchema });
  const close = (): Promise<void> => {
    stores.close();
    return pool.end();
  };
  let whose = "platform";
  try {
    await inTransaction(pool, (client) => ensureTables(client, schema));
    whose = "stores";
    // Needs no right to create tables where an operator has run `countersign migrate`.
    await migrate(pool, { schema: storesSchema });
    await stores.ready();
  } catch (error) {
    await close();
    throw new SettingError(variable, `a database with the tables of the ${whose} (${reasonOf(error)})`);
  }
  return { stores, work: stores, database: ledgerDatabase(pool, library, schema), close };
}

/**
 * Creates the tables that are missing; inside a transaction. A role that may not create any can use tables that are there.
 * Throws when tables of these names are those of another program.
 */
async function inTransaction(pool: Pool, work: (client: PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect();
  let isCommitted = false;
  try {
    await client.query("BEGIN");
    await work(client);
    await client.query("COMMIT");
    isCommitted = true;
  } finally {
    // Otherwise the connection ends, and its transaction with it.
    client.release(!isCommitted);
  }
}

async function ensureTables(connection: PoolClient, schema: string): Promise<void> {
  const dialect = postgresDialect(schema);
  // Two processes that start at once would both find them missing.
  await query(connection, ["SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", `countersign ${schema}`]);
  const places = tableNames.map((name) => `to_regclass('${dialect.schema}${name}')`).join(", ");
  const [found] = await query(connection, [`SELECT 1 WHERE num_nulls(${places}) = 0`]);
  if (found === undefined) {
    const [known] = await query(connection, ["SELECT 1 FROM pg_namespace WHERE nspname = ?", schema]);
    if (known === undefined) await connection.query(`CREATE SCHEMA ${dialect.schema.slice(0, -1)}`);
    await connection.query(tables(dialect));
  }
  const preparations = allStatements(dialect).map(
    (statement) => `PREPARE countersign_fits AS ${numbered(statement)}; DEALLOCATE countersign_fits;`,
  );
  await connection.query(preparations.join("\n"));
}
