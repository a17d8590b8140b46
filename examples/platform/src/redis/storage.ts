import { createRedisStores } from "@countersign/store-redis";
import type { Logger } from "pino";
import { openPostgresLedgers } from "../postgres/ledgers.ts";
import type { RedisLocation } from "../setting-store.ts";
import type { PlatformStorage } from "../storage.ts";
import { connectRedis } from "./client.ts";

/**
 * Keys and nonces in Redis, the rest in PostgreSQL. No transaction spans both: the UNIQUE keys of the ledgers decide what has
 * happened. Throws a SettingError.
 */
export async function openRedisStorage(location: RedisLocation, logger: Logger): Promise<PlatformStorage> {
  const { keyPrefix, payouts } = location;
  const redis = await connectRedis(location, logger);
  try {
    const ledgers = await openPostgresLedgers(payouts, logger);
    const stores = createRedisStores({ sendCommand: (args) => redis.sendCommand(args), prefix: keyPrefix });
    return {
      ...ledgers,
      stores,
      async close() {
        stores.close();
        await Promise.all([redis.close(), ledgers.close()]);
      },
    };
  } catch (error) {
    await redis.close();
    throw error;
  }
}
