import type { IdempotencyListing, IdempotencyListQuery } from "@countersign/idempotency";
import { createRedisStores, type RedisStores, type RedisStoresOptions } from "@countersign/store-redis";
import { usageErrorOf } from "../usage-error.ts";
import { openTimeoutMs } from "./deadline.ts";
import type { OpenOptions, OperatorStore } from "./store.ts";
import { connectToRedis } from "./redis-connection.ts";
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
