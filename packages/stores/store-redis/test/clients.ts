import type { RedisStoresOptions } from "@countersign/store-redis";
import { Redis as Ioredis6 } from "ioredis";
import { Redis as Ioredis5 } from "ioredis-5";
import { createClient as createRedis6 } from "redis";
import { createClient as createRedis5 } from "redis-5";

/** A client that the app has, wired as on the page. */
export interface Connection {
  readonly sendCommand: RedisStoresOptions["sendCommand"];
  readonly close: () => unknown;
}

export type Connect = (url: string) => Promise<Connection>;

interface NodeRedis {
  on(event: "error", listener: () => void): unknown;
  connect(): Promise<unknown>;
  sendCommand(command: string[]): Promise<unknown>;
  destroy(): void;
}

interface Ioredis {
  on(event: "error", listener: () => void): unknown;
  connect(): Promise<unknown>;
  call(command: string, ...args: string[]): Promise<unknown>;
  disconnect(): void;
}

// A server that a test restarts is back within milliseconds.
const retryMs = 20;
const socket = { reconnectStrategy: retryMs };
const refusing = { disableOfflineQueue: true };
const settings = { lazyConnect: true, retryStrategy: () => retryMs };

export type Client = readonly [name: string, connect: Connect];

export const clients: readonly [Client, Client, Client, Client] = [
  ["redis 6", (url) => overNodeRedis(createRedis6({ url, socket, ...refusing }))],
  ["redis 5", (url) => overNodeRedis(createRedis5({ url, socket, ...refusing }))],
  ["ioredis 6", (url) => overIoredis(new Ioredis6(url, { ...settings, enableOfflineQueue: false }))],
  ["ioredis 5", (url) => overIoredis(new Ioredis5(url, { ...settings, enableOfflineQueue: false }))],
];

/** As they come: without a connection, commands wait in a queue. */
export const queueingClients: typeof clients = [
  ["redis 6", (url) => overNodeRedis(createRedis6({ url, socket }))],
  ["redis 5", (url) => overNodeRedis(createRedis5({ url, socket }))],
  ["ioredis 6", (url) => overIoredis(new Ioredis6(url, settings))],
  ["ioredis 5", (url) => overIoredis(new Ioredis5(url, settings))],
];

/** For what does not depend on the client. */
export const connectRedis: Connect = (url) => overNodeRedis(createRedis6({ url, socket }));

async function overNodeRedis(client: NodeRedis): Promise<Connection> {
  client.on("error", () => {});
  await client.connect();
  return { sendCommand: (command) => client.sendCommand([...command]), close: () => client.destroy() };
}

async function overIoredis(client: Ioredis): Promise<Connection> {
  client.on("error", () => {});
  await client.connect();
  return {
    sendCommand: ([command = "", ...args]) => client.call(command, ...args),
    close: () => client.disconnect(),
  };
}
