import type { StoreHarnesses } from "@countersign/store-contract";
import type { AnswerStore } from "@countersign/idempotency";
import {
  type RedisStores,
  type RedisStoresOptions,
  createRedisAnswers,
  createRedisStores,
} from "@countersign/store-redis";
import { isolatedName } from "@countersign/test-support/servers/engines.ts";
import type { PrivateRedis } from "@countersign/test-support/servers/private-redis.ts";
import type { Connection } from "./clients.ts";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { eventually, notingKeys, patientMs, removeKeys } from "./connections.ts";

export interface Engine {
  readonly connect: () => Promise<Connection>;
  readonly hasClock: boolean;
  /** A server that a case may stop and fill. */
  readonly server?: PrivateRedis | undefined;
}

// The contract gives a call 5 seconds while the engine is stopped.
const stoppableMs = 3_000;

/** Stores under a prefix of their own, which goes with them. */
async function makeStores<Made extends { close(): void } = RedisStores>(
  { connect, hasClock, server }: Engine,
  create: (options: RedisStoresOptions) => Made,
) {
  const connections: Connection[] = [];
  const made: Made[] = [];
  const keys = new Set<string>();
  const prefix = isolatedName("redis");
  const clock = hasClock ? testClock() : undefined;
  const commandTimeoutMs = server === undefined ? patientMs : stoppableMs;
  const another = async (): Promise<Made> => {
    const connection = await connect();
    connections.push(connection);
    const sendCommand = notingKeys(connection.sendCommand, keys);
    const stores = create({ sendCommand, prefix, commandTimeoutMs, now: clock?.now });
    made.push(stores);
    return stores;
  };
  const setMemory = async (limit: string): Promise<void> => {
    const route = { key: undefined, isReadonly: false } as const;
    await connections[0]?.sendCommand(["CONFIG", "SET", "maxmemory", limit], route);
  };
  const ownServer =
    server === undefined
      ? {}
      : {
          engine: { stop: () => server.kill(), start: () => server.start(), durable: true },
          fill: () => setMemory("1"),
        };
  const stores = await another();
  return {
    stores,
    another,
    harness: {
      ...(clock === undefined ? {} : { advance: clock.advance }),
      ...ownServer,
      async close() {
        for (const closing of made) closing.close();
        const [first] = connections;
        await eventually(async () => {
          if (server !== undefined) await setMemory("0");
          if (first !== undefined) await removeKeys(first.sendCommand, keys);
        });
        await Promise.all(connections.map((connection) => connection.close()));
      },
    },
  };
}

export async function idempotencyHarness(engine: Engine): Promise<StoreHarnesses["idempotency"]> {
  const { stores, another, harness } = await makeStores(engine, createRedisStores);
  return { ...harness, store: stores.idempotency, another: async () => (await another()).idempotency };
}

export async function nonceHarness(engine: Engine): Promise<StoreHarnesses["nonces"]> {
  const { stores, another, harness } = await makeStores(engine, createRedisStores);
  return { ...harness, store: stores.nonces, another: async () => (await another()).nonces };
}

export async function answerHarness(engine: Engine): Promise<StoreHarnesses["answers"]> {
  const { stores, another, harness } = await makeStores<AnswerStore>(engine, createRedisAnswers);
  return { ...harness, store: stores, another };
}
