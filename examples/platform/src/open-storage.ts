import type { Logger } from "pino";
import { openPostgresStorage } from "./postgres/storage.ts";
import { SettingError } from "./setting-error.ts";
import type { StoreLocation } from "./setting-store.ts";
import { openSqliteStorage } from "./sqlite/storage.ts";
import type { PlatformStorage } from "./storage.ts";

/** Connects and creates what is missing. Throws a SettingError that names the variable and shows no password. */
export async function openStorage(location: StoreLocation, logger: Logger): Promise<PlatformStorage> {
  switch (location.kind) {
    case "postgres":
      return openPostgresStorage(location, logger);
    case "redis":
      throw new SettingError(
        "STORE_URL",
        "sqlite:<path>, memory: or postgres://… (this build does not support redis:)",
      );
    default:
      return openSqliteStorage(location);
  }
}
