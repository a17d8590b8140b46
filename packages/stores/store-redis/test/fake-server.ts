import { type RedisStores, type RedisStoresOptions, createRedisStores } from "@countersign/store-redis";

/** What a server answers to a command, and a script to its step; a function is asked, and may throw. */
export type Reply = unknown;

export const runId = "0123456789abcdef0123456789abcdef01234567";

export interface FakeServer extends RedisStores {
  readonly sent: string[];
}

/**
 * Stores on a server that answers each command as told: for what a real one cannot be brought to answer. SCAN is the page of a
 * list, NAME the look at what begins the names of its keys.
 */
export function onFakeServer(
  replies: Readonly<Record<string, Reply>>,
  options: Partial<RedisStoresOptions> = {},
): FakeServer {
  const sent: string[] = [];
  const sendCommand = async (command: readonly string[]): Promise<unknown> => {
    const [name = ""] = command;
    sent.push(name);
    const step = stepOf(command);
    const reply = replies[step] ?? usualReply(step, command);
    const answered: unknown = await (typeof reply === "function" ? reply() : reply);
    // As it is, an error is what the server says; from a function, what the client resolves to.
    if (reply instanceof Error) throw reply;
    if (answered instanceof Error) return answered;
    return name.startsWith("EVAL") ? [command.at(-1), answered] : answered;
  };
  return { ...createRedisStores({ sendCommand, ...options }), sent };
}

function stepOf([name = "", , count, key]: readonly string[]): string {
  if (!name.startsWith("EVAL")) return name;
  if (count === "0") return "SCAN";
  return key?.endsWith(":key:") === true ? "NAME" : name;
}

function usualReply(step: string, command: readonly string[]): Reply {
  if (step === "INFO") return goodInfo;
  return step === "NAME" ? command[3] : new Error(`ERR unknown command ${step}`);
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
