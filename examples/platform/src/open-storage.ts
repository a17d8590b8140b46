import type { Logger } from "pino";
import { openPostgresStorage } from "./postgres/storage.ts";
import { openRedisStorage } from "./redis/storage.ts";
import type { StoreLocation } from "./setting-store.ts";
import { openSqliteStorage } from "./sqlite/storage.ts";
import type { PlatformStorage } from "./storage.ts";

/** Connects and creates what is missing. Throws a SettingError that names the variable and shows no password. */
export async function openStorage(location: StoreLocation, logger: Logger): Promise<PlatformStorage> {
  switch (location.kind) {
    case "postgres":
      return openPostgresStorage(location, logger);
    case "redis":
      return openRedisStorage(location, logger);
    default:
      return openSqliteStorage(location);
  }
}
