import { type RedisStores, type RedisStoresOptions, createRedisStores } from "@countersign/store-redis";

/** What a server answers to a command; a function is asked, and may throw. */
export type Reply = unknown;

export interface FakeServer extends RedisStores {
  /** The names of the commands that were sent. */
  readonly sent: string[];
}

/** Stores on a server that answers each command as told: for what a real one cannot be brought to answer. */
export function onFakeServer(
  replies: Readonly<Record<string, Reply>>,
  options: Partial<RedisStoresOptions> = {},
): FakeServer {
  const sent: string[] = [];
  const sendCommand = ([name = ""]: readonly string[]): Promise<unknown> => {
    sent.push(name);
    const reply = replies[name] ?? (name === "INFO" ? goodInfo : new Error(`ERR unknown command ${name}`));
    const answered: unknown = typeof reply === "function" ? reply() : reply;
    if (answered instanceof Promise) return answered;
    return answered instanceof Error ? Promise.reject(answered) : Promise.resolve(answered);
  };
  return { ...createRedisStores({ sendCommand, ...options }), sent };
}

export const goodInfo: string = infoOf({});

/** INFO as a server gives it, with some lines that are read and others. */
export function infoOf(fields: Readonly<Record<string, string>>): string {
  const lines = Object.entries({
    redis_version: "7.0.15",
    os: "Linux",
    aof_enabled: "1",
    maxmemory_policy: "noeviction",
    role: "master",
    ...fields,
  }).map(([name, value]) => `${name}:${value}\r\n`);
  return `# Server\r\n${lines.join("")}`;
}
