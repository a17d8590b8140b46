import { reasonOf, SettingError } from "../setting-error.ts";
import type { SqliteLocation } from "../setting-store.ts";
import type { PlatformStorage } from "../storage.ts";
import { openDatabase, type PlatformDatabase } from "./database.ts";
import { createSqliteOutbox } from "./outbox.ts";
import { createSqlitePartyLedger } from "./party-ledger.ts";
import { createSqlitePayoutLedger } from "./payout-ledger.ts";

/** Everything on one connection: a payout and the end of its key are one transaction. */
export interface SqliteStorage extends PlatformStorage {
  readonly database: PlatformDatabase;
}

/** Opens the database and creates what is missing. Throws a SettingError. `now` gives milliseconds since 1970. */
export function openSqliteStorage(location: SqliteLocation, now: () => number = Date.now): SqliteStorage {
  const { database, stores } = openDatabase(location);
  try {
    return {
      database,
      stores,
      outbox: createSqliteOutbox(database, now),
      ledger: createSqlitePayoutLedger(database, now),
      parties: createSqlitePartyLedger(database),
      close() {
        stores.close();
        // So that the database file alone is complete, for whoever copies it.
        database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
        database.close();
        return Promise.resolve();
      },
    };
  } catch (error) {
    stores.close();
    database.close();
    throw new SettingError("STORE_URL", `a database with the tables of the platform (${reasonOf(error)})`);
  }
}
