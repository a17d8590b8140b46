import type { SendCommand } from "@countersign/store-redis";
import type * as redisModule from "redis";
import type { RedisClientType } from "redis";
import { UsageError } from "../command-io.ts";
import { printable } from "../printable.ts";
import { messageOf } from "../thrown.ts";
import { openedInTime, openTimeoutMs } from "./deadline.ts";
import { loadDriver } from "./load-driver.ts";
import type { ServerLocation } from "./store-location.ts";

type Redis = typeof redisModule;

/** A server, or a cluster, that answers. */
export interface RedisConnection {
  /** The servers that together hold all keys: a command that names no key has to go to each of them. */
  readonly masters: readonly RedisMaster[];
  readonly close: () => void;
}

interface RedisMaster {
  /** Stays the same between two commands; empty without a cluster. */
  readonly id: string;
  /** Sends what names a key to where the key is, and everything else to this server. */
  readonly sendCommand: SendCommand;
}

const socket = { connectTimeout: openTimeoutMs, reconnectStrategy: false } as const;

/** Connects, and finds the other servers of a cluster. Throws when they do not answer in time. */
export async function connectToRedis(location: ServerLocation): Promise<RedisConnection> {
  const redis = await loadDriver("redis", () => import("redis"));
  const client = createClient(redis, location);
  const close = (): void => {
    if (client.isOpen) client.destroy();
  };
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

function createClient(redis: Redis, { url, hide }: ServerLocation): RedisClientType {
  try {
    const client: RedisClientType = redis.createClient({ url, socket, disableOfflineQueue: true });
    // A connection that breaks fails the command that runs or comes next; without a listener it would end the process.
    client.on("error", () => {});
    return client;
  } catch (error) {
    throw new UsageError(`--store-url: ${printable(hide(messageOf(error)))}`, { cause: error });
  }
}

async function isInCluster(client: RedisClientType): Promise<boolean> {
  try {
    return /^cluster_enabled:1/m.test(await client.info("cluster"));
  } catch {
    // Without the right to INFO. In a cluster, the first command then fails with MOVED.
    return false;
  }
}

async function connectToCluster(redis: Redis, { url, shown }: ServerLocation): Promise<RedisConnection> {
  const { protocol, username, password } = new URL(url);
  const secure = protocol === "rediss:" ? { ...socket, tls: true as const } : socket;
  const cluster = redis.createCluster({
    rootNodes: [{ url, socket }],
    // The other servers get nothing from the URL of the first.
    defaults: {
      ...(username === "" ? {} : { username: decodeURIComponent(username) }),
      ...(password === "" ? {} : { password: decodeURIComponent(password) }),
      socket: secure,
    },
    minimizeConnections: true,
  });
  cluster.on("error", () => {});
  const close = (): void => {
    if (cluster.isOpen) cluster.destroy();
  };
  try {
    await openedInTime(shown, cluster.connect());
  } catch (error) {
    close();
    throw error;
  }
  const masters = cluster.masters.map((master) => ({
    id: master.id,
    sendCommand: async (...[command, { key, isReadonly }]: Parameters<SendCommand>) => {
      if (key !== undefined) return await cluster.sendCommand(key, isReadonly, [...command]);
      const node = await cluster.nodeClient(master);
      return await node.sendCommand([...command]);
    },
  }));
  // The order in which a listing goes on, in this process and in the next.
  masters.sort((one, other) => (one.id < other.id ? -1 : 1));
  return { masters, close };
}
