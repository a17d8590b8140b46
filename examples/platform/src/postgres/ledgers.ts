import { withPostgresTransaction } from "@countersign/store-postgres";
import type { Pool } from "pg";
import type { Logger } from "pino";
import { reasonOf, SettingError } from "../setting-error.ts";
import type { PostgresLocation } from "../setting-store.ts";
import type { PlatformStorage } from "../storage.ts";
import type { Now } from "./dialect.ts";
import { createPostgresOutbox } from "./outbox.ts";
import { createPostgresPartyLedger } from "./party-ledger.ts";
import { createPostgresPayoutLedger } from "./payout-ledger.ts";
import { connectPool } from "./pool.ts";
import { ensureTables } from "./tables.ts";

/** The ledgers, and the pool that they are on. */
export interface PostgresLedgers extends Omit<PlatformStorage, "stores"> {
  readonly pool: Pool;
}

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
  return {
    pool,
    outbox: createPostgresOutbox(pool, schema, now),
    ledger: createPostgresPayoutLedger(pool, schema, now),
    parties: createPostgresPartyLedger(pool, schema),
    close: () => pool.end(),
  };
}
