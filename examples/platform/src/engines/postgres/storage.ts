import { reasonOf, SettingError, type PostgresLocation } from "@countersign/example-settings";
import {
  createPostgresStores,
  migratePostgres,
  type PostgresQueryable,
  type PostgresStores,
  withPostgresTransaction,
} from "@countersign/store-postgres";
import type { Pool } from "pg";
import type { Logger } from "pino";
import { allStatements, tableNames, tables } from "../../ledgers/tables.ts";
import { ledgersOn, type Ledgers, type PlatformStorage } from "../storage.ts";
import { ledgerDatabase, numbered, postgresDialect, query, type Now } from "./database.ts";
import { connectPool } from "./pool.ts";

/** The ledgers, and the pool that they are on. */
export interface PostgresLedgers extends Ledgers {
  readonly pool: Pool;
  close(): Promise<void>;
}

/** Everything in one database: a payout and the end of its key are one transaction. The stores have a pool of their own. */
export type PostgresStorage = PostgresLedgers & PlatformStorage;

// Claims and heartbeats take a millisecond, and wait for nothing but the rows of expired leases. On the connections of the ledgers
// they would wait for whole transactions, and the leases of those that wait for a connection would end meanwhile.
const storeConnections = 5;

/** Connects and creates the tables that are missing. Throws a SettingError. `now` replaces the server's clock in tests. */
export async function openPostgresLedgers(
  location: PostgresLocation,
  logger: Logger,
  now: Now = () => null,
): Promise<PostgresLedgers> {
  const { schema, variable } = location;
  const pool = await connectPool(location, logger);
  try {
    await withPostgresTransaction(pool, (client) => ensureTables(client, schema));
  } catch (error) {
    await pool.end();
    throw new SettingError(variable, `a database with the tables of the platform (${reasonOf(error)})`);
  }
  return { pool, ...ledgersOn(ledgerDatabase(pool, schema, now)), close: () => pool.end() };
}

/** The same, with the stores of the guards. */
export async function openPostgresStorage(
  location: PostgresLocation,
  logger: Logger,
  now?: Now,
): Promise<PostgresStorage> {
  const { schema, variable } = location;
  const ledgers = await openPostgresLedgers(location, logger, now);
  let storePool: Pool;
  try {
    storePool = await connectPool(location, logger, storeConnections);
  } catch (error) {
    await ledgers.close();
    throw error;
  }
  const stores = createPostgresStores({ pool: storePool, schema });
  const close = async (): Promise<void> => {
    stores.close();
    await Promise.all([storePool.end(), ledgers.close()]);
  };
  try {
    await prepare(storePool, schema, stores);
  } catch (error) {
    await close();
    throw new SettingError(variable, `a database with the tables of the stores (${reasonOf(error)})`);
  }
  return { ...ledgers, stores, close };
}

// A role that may not create tables can use those that an operator has made with `countersign migrate`.
async function prepare(pool: Pool, schema: string, stores: PostgresStores): Promise<void> {
  try {
    await stores.ready();
  } catch {
    await migratePostgres(pool, { schema });
    await stores.ready();
  }
}

/**
 * Creates the tables that are missing; inside a transaction. A role that may not create any can use tables that are there.
 * Throws when tables of these names are those of another program.
 */
async function ensureTables(connection: PostgresQueryable, schema: string): Promise<void> {
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
