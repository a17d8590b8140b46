import type { RedisStoresOptions } from "@countersign/store-redis";
import type * as redisModule from "redis";
import type { RedisClientType } from "redis";
import { loadDriver } from "../load-package.ts";
import { openedInTime, openTimeoutMs } from "./store-failure.ts";
import { refusingUrl, type StoreLocation } from "./store-target.ts";

type Redis = typeof redisModule;

interface RedisConnection {
  /** Together they hold all keys: a command without a key goes to each. */
  readonly masters: readonly RedisMaster[];
  readonly close: () => void;
}

interface RedisMaster {
  /** Stable from one command to the next; empty without a cluster. */
  readonly id: string;
  /** Sends a command with a key to the key's server, any other to this one. */
  readonly sendCommand: RedisStoresOptions["sendCommand"];
}

const socket = { connectTimeout: openTimeoutMs, reconnectStrategy: false } as const;

/** Throws when the servers do not answer in time. */
export async function connectToRedis(location: StoreLocation): Promise<RedisConnection> {
  const redis = await loadDriver(["redis"], () => import("redis"));
  const options = { url: location.address, socket, disableOfflineQueue: true } as const;
  const client: RedisClientType = refusingUrl(location, () => redis.createClient(options));
  const close = closing(client);
  try {
    await openedInTime(location.shown, client.connect());
    if (!(await openedInTime(location.shown, isInCluster(client)))) {
      return { masters: [{ id: "", sendCommand: (command) => client.sendCommand([...command]) }], close };
    }
  } catch (error) {
    close();
    throw error;
  }
  close();
  return await connectToCluster(redis, location);
}

/** Ends a client at once. Its listener keeps a broken connection from ending the process: only a command fails. */
function closing(client: {
  readonly isOpen: boolean;
  on(event: "error", listener: () => void): unknown;
  destroy(): void;
}): () => void {
  client.on("error", () => {});
  return () => {
    if (client.isOpen) client.destroy();
  };
}

async function isInCluster(client: RedisClientType): Promise<boolean> {
  try {
    return /^cluster_enabled:1/m.test(await client.info("cluster"));
  } catch {
    // No right to INFO. In a cluster, the first command then fails with MOVED.
    return false;
  }
}

async function connectToCluster(redis: Redis, { address, shown }: StoreLocation): Promise<RedisConnection> {
  const { protocol, username, password } = new URL(address);
  const cluster = redis.createCluster({
    rootNodes: [{ url: address, socket }],
    // The other servers get nothing from the first one's URL.
    defaults: {
      ...(username === "" ? {} : { username: decodeURIComponent(username) }),
      ...(password === "" ? {} : { password: decodeURIComponent(password) }),
      socket: protocol === "rediss:" ? { ...socket, tls: true as const } : socket,
    },
    minimizeConnections: true,
  });
  const close = closing(cluster);
  try {
    await openedInTime(shown, cluster.connect());
  } catch (error) {
    close();
    throw error;
  }
  const masters = cluster.masters.map((master) => ({
    id: master.id,
    sendCommand: async (...[command, { key, isReadonly }]: Parameters<RedisStoresOptions["sendCommand"]>) => {
      if (key !== undefined) return await cluster.sendCommand(key, isReadonly, [...command]);
      const node = await cluster.nodeClient(master);
      return await node.sendCommand([...command]);
    },
  }));
  // A listing continues in this order, also in the next process.
  masters.sort((one, other) => (one.id < other.id ? -1 : 1));
  return { masters, close };
}
