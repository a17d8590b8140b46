import { createPostgresStores, migratePostgres } from "@countersign/store-postgres";
import type { Pool } from "pg";
import type { Logger } from "pino";
import { reasonOf, SettingError } from "../setting-error.ts";
import type { PostgresLocation } from "../setting-store.ts";
import type { PlatformStorage } from "../storage.ts";
import type { Now } from "./dialect.ts";
import { openPostgresLedgers } from "./ledgers.ts";

/** Everything in one database: a payout and the end of its key are one transaction. */
export interface PostgresStorage extends PlatformStorage {
  readonly pool: Pool;
}

/** Connects and creates what is missing. Throws a SettingError. `now` replaces the server's clock of the ledgers in tests. */
export async function openPostgresStorage(
  location: PostgresLocation,
  logger: Logger,
  now?: Now,
): Promise<PostgresStorage> {
  const { schema, variable } = location;
  const ledgers = await openPostgresLedgers(location, logger, now);
  const { pool } = ledgers;
  const stores = createPostgresStores({ pool, schema });
  try {
    await prepare(pool, schema, stores);
  } catch (error) {
    stores.close();
    await ledgers.close();
    throw new SettingError(variable, `a database with the tables of the stores (${reasonOf(error)})`);
  }
  return {
    ...ledgers,
    stores,
    async close() {
      stores.close();
      await ledgers.close();
    },
  };
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
