import { withDeadline } from "@countersign/core";
import type { Logger } from "pino";
import { createClient } from "redis";
import { failureOf } from "./engine-failure.ts";
import { SettingError } from "./setting-error.ts";
import type { RedisLocation } from "./store.ts";

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
