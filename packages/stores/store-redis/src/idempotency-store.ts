import type { IdempotencyStore } from "@countersign/idempotency";
import { StoreGate, TableStore } from "@countersign/idempotency/store";
import { name, RedisKeyTable } from "./key-table.ts";
import type { ResolvedRedisOptions } from "./options.ts";
import type { ServerCheck } from "./server-check.ts";

/**
 * The idempotency store on Redis. `list` scans the whole database; on a cluster, the node that `sendCommand` reaches without a key.
 * `prune` returns 0 after the server has replied: Redis itself removes what has expired.
 */
export class RedisIdempotencyStore extends TableStore<"async"> implements IdempotencyStore {
  constructor(options: ResolvedRedisOptions, server: ServerCheck) {
    const { retentionMs } = options;
    super(new RedisKeyTable(options, server), { mode: "async", retentionMs, gate: new StoreGate(name) });
  }
}
