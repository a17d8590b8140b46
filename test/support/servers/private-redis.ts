import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./private-process.mjs";
import {
  redisCommand,
  startRedisServer,
  type RedisServer,
  type RedisServerOptions,
} from "./redis-server.mjs";
import { reportMissing } from "./server-binaries.mjs";

export type PrivateRedis = RedisServer;

export interface RedisCluster {
  readonly nodes: readonly string[];
  close(): Promise<void>;
}

/**
 * A Redis for tests that stop it or change its settings. Undefined, after a loud line, where none is installed; with CI set that
 * is an error.
 */
export async function startPrivateRedis(options?: RedisServerOptions): Promise<PrivateRedis | undefined> {
  const server = await startRedisServer(options);
  if (server === undefined) {
    reportMissing("Redis", "tests that stop a server of their own are skipped. Install redis-server.");
  }
  return server;
}

const lastSlot = 16_383;
const masters = 3;

/** A Redis Cluster on loopback; undefined as with {@link startPrivateRedis}. */
export async function startRedisCluster(): Promise<RedisCluster | undefined> {
  const servers: { server: RedisServer; busPort: number }[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(servers.map(({ server }) => server.close()));
  };
  try {
    for (let index = 0; index < masters; index++) {
      // By default the bus has the client's port plus 10,000, which may be taken or beyond the last port.
      const busPort = await freePort();
      const server = await startPrivateRedis({ args: clusterArgs(busPort) });
      if (server === undefined) return undefined;
      servers.push({ server, busPort });
    }
    await form(servers);
  } catch (error) {
    await close();
    throw error;
  }
  return { nodes: servers.map(({ server }) => server.url), close };
}

function clusterArgs(busPort: number): string[] {
  const settings = {
    "cluster-enabled": "yes",
    "cluster-port": String(busPort),
    "cluster-announce-ip": "127.0.0.1",
    "cluster-announce-bus-port": String(busPort),
    "cluster-node-timeout": "5000",
  };
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}

async function form(servers: readonly { server: RedisServer; busPort: number }[]): Promise<void> {
  const share = Math.ceil((lastSlot + 1) / servers.length);
  for (const [index, { server, busPort }] of servers.entries()) {
    const [from, to] = [index * share, Math.min((index + 1) * share - 1, lastSlot)];
    await order(server, `CLUSTER ADDSLOTSRANGE ${from} ${to}`);
    await order(server, `CLUSTER SET-CONFIG-EPOCH ${index + 1}`);
    const [first] = servers;
    if (first !== undefined && index > 0) {
      await order(first.server, `CLUSTER MEET 127.0.0.1 ${server.port} ${busPort}`);
    }
  }
  await Promise.all(servers.map(({ server }) => untilFormed(server)));
}

async function order(server: RedisServer, command: string): Promise<void> {
  const answer = await redisCommand({ host: "127.0.0.1", port: server.port, command });
  if (answer !== "+OK") throw new Error(`${command}: ${String(answer)}`);
}

async function untilFormed({ port }: RedisServer): Promise<void> {
  const end = Date.now() + 20_000;
  for (;;) {
    const info = await redisCommand({ host: "127.0.0.1", port, command: "CLUSTER INFO" });
    const isFormed =
      info?.includes("cluster_state:ok") === true &&
      info.includes(`cluster_slots_ok:${lastSlot + 1}`) &&
      info.includes(`cluster_known_nodes:${masters}`);
    if (isFormed) return;
    if (Date.now() > end) throw new Error(`the cluster was not formed within 20 seconds: ${String(info)}`);
    await sleep(50);
  }
}
