import type { RedisLocation } from "@countersign/example-settings";
import { connectRedis } from "@countersign/example-settings/redis-connection";
import { createRedisStores } from "@countersign/store-redis";
import type { Logger } from "pino";
import { openPostgresStorage } from "./postgres/storage.ts";
import type { PlatformStorage } from "./storage.ts";

/**
 * Keys and nonces in Redis, the rest in PostgreSQL, tasks too. No transaction spans both: the UNIQUE keys of the ledgers decide what
 * has happened. Throws a SettingError.
 */
export async function openRedisStorage(location: RedisLocation, logger: Logger): Promise<PlatformStorage> {
  const redis = await connectRedis(location, logger);
  try {
    const ledgers = await openPostgresStorage(location.payouts, logger);
    const stores = createRedisStores({ sendCommand: redis.sendCommand, prefix: location.keyPrefix });
    const close = async (): Promise<void> => {
      stores.close();
      await Promise.all([redis.close(), ledgers.close()]);
    };
    return { ...ledgers, stores, close };
  } catch (error) {
    await redis.close();
    throw error;
  }
}
