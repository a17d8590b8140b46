import { createPostgresStores, migratePostgres } from "@countersign/store-postgres";
import type { Pool } from "pg";
import type { Logger } from "pino";
import { reasonOf, SettingError } from "../setting-error.ts";
import type { PostgresLocation } from "../setting-store.ts";
import type { PlatformStorage } from "../storage.ts";
import type { Now } from "./dialect.ts";
import { openPostgresLedgers } from "./ledgers.ts";
import { connectPool } from "./pool.ts";

/** Everything in one database: a payout and the end of its key are one transaction. */
export interface PostgresStorage extends PlatformStorage {
  /** Of the ledgers; the stores have one of their own. */
  readonly pool: Pool;
}

// Claims and heartbeats take a millisecond, and wait for nothing but the rows of expired leases. On the connections of the ledgers
// they would wait for whole transactions, and the leases of those that wait for a connection would end meanwhile.
const storeConnections = 5;

/** Connects and creates what is missing. Throws a SettingError. `now` replaces the server's clock of the ledgers in tests. */
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
async function prepare(
  pool: Pool,
  schema: string,
  stores: { readonly ready: () => Promise<void> },
): Promise<void> {
  try {
    await stores.ready();
  } catch {
    await migratePostgres(pool, { schema });
    await stores.ready();
  }
}
