import { withDeadline } from "@countersign/core";
import { failureOf, type RedisLocation, SettingError } from "@countersign/example-settings";
import { createRedisStores } from "@countersign/store-redis";
import type { Logger } from "pino";
import { createClient } from "redis";
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

/** A connection that comes back by itself, and refuses commands in the meantime. */
export interface RedisConnection {
  readonly sendCommand: (args: readonly string[]) => Promise<unknown>;
  /** Waits for the answers that are due, a moment long. */
  close(): Promise<void>;
}

const connectTimeoutMs = 3_000;
const closeTimeoutMs = 1_000;
const longestPauseMs = 2_000;

/** Connects to a Redis. Throws a SettingError that shows nothing of the URL when it cannot. */
export async function connectRedis(
  { url, variable }: Pick<RedisLocation, "url" | "variable">,
  logger: Logger,
): Promise<RedisConnection> {
  let isStarted = false;
  const client = createClient({
    url,
    // A request that waits for a Redis that is gone is better told to come again.
    disableOfflineQueue: true,
    socket: {
      connectTimeout: connectTimeoutMs,
      reconnectStrategy: (retries) => isStarted && Math.min(50 * 2 ** Math.min(retries, 10), longestPauseMs),
    },
  });
  client.on("error", (error: unknown) => {
    // Without a listener the error would end the process.
    if (isStarted) logger.warn({ err: error }, "the connection to Redis was lost");
  });
  try {
    const late = (): Error => new Error(`timeout after ${connectTimeoutMs} ms`);
    await withDeadline(client.connect(), connectTimeoutMs + 500, late);
    await withDeadline(client.ping(), connectTimeoutMs, late);
  } catch (error) {
    client.destroy();
    throw new SettingError(variable, `a Redis that lets the platform in (${failureOf(error)})`);
  }
  isStarted = true;
  return {
    sendCommand: (args) => client.sendCommand([...args]),
    async close() {
      try {
        await withDeadline(client.close(), closeTimeoutMs, () => new Error("Redis does not answer"));
      } catch {
        client.destroy();
      }
    },
  };
}
