import { createRedisStores } from "@countersign/store-redis";
import { createClient } from "redis";
import { isolatedName } from "../support/servers/engines.ts";
import { type Engine, retentionMs } from "./engine.ts";

/** Redis: each process has a connection of its own; each run has a prefix of its own. */
export async function redisEngine(url: string): Promise<Engine> {
  const clients = [createClient({ url }), createClient({ url })] as const;
  await Promise.all(clients.map((client) => client.connect()));
  const prefix = isolatedName("model");
  let runs = 0;
  return {
    pays: false,
    numRuns: 300,
    async open(clock) {
      runs += 1;
      const start = (client: (typeof clients)[number]) =>
        createRedisStores({
          sendCommand: (args) => client.sendCommand([...args]),
          prefix: `${prefix}:${runs}`,
          retentionMs,
          now: () => clock.nowMs,
        });
      const running = [start(clients[0]), start(clients[1])] as const;
      return {
        store: (index) => running[index].idempotency,
        close() {
          for (const stores of running) stores.close();
        },
      };
    },
    async close() {
      for await (const found of clients[0].scanIterator({ MATCH: `${prefix}:*`, COUNT: 1_000 })) {
        if (found.length > 0) await clients[0].unlink(found);
      }
      await Promise.all(clients.map((client) => client.close()));
    },
  };
}
