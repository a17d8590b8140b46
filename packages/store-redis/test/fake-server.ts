import { type RedisStores, type RedisStoresOptions, createRedisStores } from "@countersign/store-redis";

/** What a server answers to a command, and a script to its step; a function is asked, and may throw. */
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
  const sendCommand = async (command: readonly string[]): Promise<unknown> => {
    const [name = ""] = command;
    sent.push(name);
    const reply = replies[name] ?? (name === "INFO" ? goodInfo : new Error(`ERR unknown command ${name}`));
    const answered: unknown = await (typeof reply === "function" ? reply() : reply);
    // As it is, an error is what the server says; from a function, what the client resolves to.
    if (reply instanceof Error) throw reply;
    if (answered instanceof Error) return answered;
    return name.startsWith("EVAL") ? [command.at(-1), answered] : answered;
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
