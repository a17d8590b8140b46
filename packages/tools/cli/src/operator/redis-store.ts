import type { IdempotencyListing, IdempotencyListQuery } from "@countersign/idempotency";
import { createRedisStores, type RedisStores, type RedisStoresOptions } from "@countersign/store-redis";
import { usageErrorOf } from "../usage-error.ts";
import type { StoreCondition } from "../doctor/findings.ts";
import { openedInTime, openTimeoutMs } from "./deadline.ts";
import type { OpenOptions, OperatorStore } from "./store.ts";
import { connectToRedis } from "./redis-connection.ts";
import { StoreFailure } from "./store-failure.ts";
import type { ServerLocation } from "./store-location.ts";
import type { StoreTarget } from "./store-options.ts";

/** The stores on one of the servers that hold the keys. */
interface Shard {
  readonly id: string;
  readonly stores: RedisStores;
}

/** Connects to a Redis server or cluster. */
export async function openRedisStore(
  location: ServerLocation,
  { prefix }: StoreTarget,
  { retentionMs }: OpenOptions,
): Promise<OperatorStore> {
  const options = { prefix, retentionMs, commandTimeoutMs: openTimeoutMs };
  assertOptions(options);
  const { masters, close } = await connectToRedis(location);
  const shards = masters.map(({ id, sendCommand }) => ({
    id,
    stores: createRedisStores({ ...options, sendCommand }),
  }));
  return {
    idempotency: acrossShards(shards),
    nonces: undefined,
    close() {
      for (const { stores } of shards) stores.close();
      close();
    },
  };
}

/** Asks each server that holds keys how it keeps them. */
export async function inspectRedis(
  location: ServerLocation,
  { prefix }: StoreTarget,
): Promise<StoreCondition> {
  assertOptions({ prefix, commandTimeoutMs: openTimeoutMs });
  const { masters, close } = await connectToRedis(location);
  try {
    const doubts = new Map<string, StoreCondition["doubts"][number]>();
    let clock: StoreCondition["clock"];
    for (const { sendCommand } of masters) {
      const ask = async (...command: string[]): Promise<unknown> => {
        const answer = sendCommand(command, { key: undefined, isReadonly: false });
        return await openedInTime(location.shown, answer);
      };
      // oxlint-disable-next-line no-await-in-loop -- one server after the other
      for (const doubt of await redisDoubts(ask)) doubts.set(doubt.join(), doubt);
      const sentMs = Date.now();
      // oxlint-disable-next-line no-await-in-loop -- see above
      const theirsMs = redisTimeMs(await ask("TIME"));
      clock ??= { theirsMs, sentMs, receivedMs: Date.now() };
    }
    return { doubts: [...doubts.values()], usable: true, ...(clock === undefined ? {} : { clock }) };
  } finally {
    close();
  }
}

function redisTimeMs(answer: unknown): number {
  const [seconds, micros]: unknown[] = Array.isArray(answer) ? answer : [];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

/** What is wrong with a server that answers `ask`. */
export async function redisDoubts(
  ask: (...command: string[]) => Promise<unknown>,
): Promise<StoreCondition["doubts"]> {
  let info: string;
  try {
    info = String(await ask("INFO"));
  } catch (error) {
    if (error instanceof StoreFailure) throw error;
    return [["redis-unreadable", "the server shows no INFO to this user"]];
  }
  const field = (name: string): string =>
    new RegExp(`^${name}:([\\w.-]{1,40})`, "m").exec(info)?.[1] ?? "unknown";
  const doubts: [StoreCondition["doubts"][number][0], string][] = [];
  const policy = field("maxmemory_policy");
  if (policy !== "noeviction") {
    doubts.push([
      "redis-evicts",
      `maxmemory-policy is ${policy}: short of memory, the server forgets paid keys`,
    ]);
  }
  const keepsFile = field("aof_enabled") === "1";
  if (!keepsFile) doubts.push(["redis-forgets", "appendonly is no: a restart forgets paid keys and nonces"]);
  if (field("role") === "slave") doubts.push(["redis-replica", "the server is a replica"]);
  const [major = 0, minor = 0] = field("redis_version").split(".").map(Number);
  if (major < 6 || (major === 6 && minor < 2)) {
    doubts.push(["redis-old", `Redis ${field("redis_version")} is older than 6.2`]);
  }
  const appendfsync = keepsFile ? await appendfsyncOf(ask) : "always";
  if (appendfsync !== "always") {
    doubts.push(["redis-appendfsync", `appendfsync is ${appendfsync}: a crash can forget the last second`]);
  }
  return doubts;
}

/** Managed servers refuse CONFIG; what cannot be read is no finding. */
async function appendfsyncOf(ask: (...command: string[]) => Promise<unknown>): Promise<string> {
  try {
    const answer = await ask("CONFIG", "GET", "appendfsync");
    const value: unknown = Array.isArray(answer) ? answer[1] : Object(answer).appendfsync;
    return typeof value === "string" && /^[a-z]{1,20}$/.test(value) ? value : "always";
  } catch (error) {
    if (error instanceof StoreFailure) throw error;
    return "always";
  }
}

// Before anything is connected, so that a wrong flag is a wrong flag on every day.
function assertOptions(options: Omit<RedisStoresOptions, "sendCommand">): void {
  try {
    createRedisStores({ ...options, sendCommand: () => Promise.reject(new Error("not connected")) }).close();
  } catch (error) {
    throw usageErrorOf(error);
  }
}

function acrossShards(shards: readonly Shard[]): OperatorStore["idempotency"] {
  const [first] = shards;
  if (first === undefined) throw new Error("the cluster has no server that holds keys");
  const { idempotency } = first.stores;
  return {
    read: (key) => idempotency.read(key),
    resolve: (key, outcome, decision) => idempotency.resolve(key, outcome, decision),
    reopen: (key, decision) => idempotency.reopen(key, decision),
    readReleased: (key) => idempotency.readReleased(key),
    prune: () => idempotency.prune(),
    list: (query) => (first.id === "" ? idempotency.list(query) : listShards(shards, query)),
  };
}

/** One server after another; the cursor is that of the server, behind the server's id. */
async function listShards(
  shards: readonly Shard[],
  { cursor, ...query }: IdempotencyListQuery,
): Promise<IdempotencyListing> {
  const [id, at] = cursor?.split(":") ?? [shards[0]?.id];
  const index = shards.findIndex((shard) => shard.id === id);
  const shard = shards[index];
  // A server that has gone may have left its keys to another one, which was listed already.
  if (shard === undefined) throw new TypeError("the cursor is of no server of this cluster; begin anew");
  const page = await shard.stores.idempotency.list({ ...query, cursor: at === "" ? undefined : at });
  const next = shards[index + 1];
  if (page.cursor !== undefined) return { ...page, cursor: `${shard.id}:${page.cursor}` };
  return { ...page, cursor: next === undefined ? undefined : `${next.id}:` };
}
