import { createRedisStores, type RedisStores, type RedisStoresOptions } from "@countersign/store-redis";
import { afterTest, pause } from "@countersign/test-support/runs/after-test.ts";
import { isolatedName, redisUrl } from "@countersign/test-support/servers/engines.ts";
import { connectRedis } from "./clients.ts";

export const dayMs = 86_400_000;

/** For `commandTimeoutMs` where no time-out is the subject: a busy machine may take longer than the default. */
export const patientMs = 60_000;

/** What the step gives once it gives something: the client may have to find its server again. */
export async function eventually<T>(step: () => Promise<T>): Promise<T> {
  const end = Date.now() + 20_000;
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (Date.now() > end) throw error;
      await pause(10);
    }
  }
}

/** Notes the keys that are written, to remove them: a shared server may hold millions of others. */
export function notingKeys(
  sendCommand: RedisStoresOptions["sendCommand"],
  keys: Set<string>,
): RedisStoresOptions["sendCommand"] {
  return (command, route) => {
    if (route.key !== undefined) keys.add(route.key);
    return sendCommand(command, route);
  };
}

/** Removes the keys, one command each: also on a cluster. */
export async function removeKeys(
  sendCommand: RedisStoresOptions["sendCommand"],
  keys: Iterable<string>,
): Promise<void> {
  await Promise.all([...keys].map((key) => sendCommand(["UNLINK", key], { key, isReadonly: false })));
}

export interface TestStores extends RedisStores {
  readonly sendCommand: RedisStoresOptions["sendCommand"];
  readonly prefix: string;
  /** Sends a command on the record of a key, its name after the command's. */
  readonly onKey: (key: string, command: string, ...args: string[]) => Promise<unknown>;
}

/** Stores with a prefix of their own on the shared server; what is sent over their client is removed with the test. */
export async function newStores(options: Partial<RedisStoresOptions> = {}): Promise<TestStores> {
  const connection = await connectRedis(redisUrl ?? "");
  const keys = new Set<string>();
  const prefix = isolatedName("redis");
  const sendCommand = notingKeys(connection.sendCommand, keys);
  const stores = createRedisStores({ sendCommand, prefix, commandTimeoutMs: patientMs, ...options });
  afterTest(async () => {
    await removeKeys(connection.sendCommand, keys);
    await connection.close();
  });
  return {
    ...stores,
    sendCommand,
    prefix,
    onKey(key, command, ...args) {
      const name = `${prefix}:key:${key}`;
      return sendCommand([command, name, ...args], { key: name, isReadonly: false });
    },
  };
}
