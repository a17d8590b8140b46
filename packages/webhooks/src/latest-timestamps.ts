import { assertKnownOptions, integerOption } from "@countersign/guard";
import type { Awaitable } from "@countersign/idempotency-guard";
import { LRUCache } from "lru-cache";
import type { WebhookTimestamp } from "./timestamp.ts";

/** Where `latestOnly` keeps the time of the last event that it handled for each key. */
export interface LatestTimestamps {
  /** undefined or null when nothing is known of the key. */
  get(key: string): Awaitable<WebhookTimestamp | null | undefined>;
  /** Called after the event was handled, with times that never go back in one process. */
  set(key: string, timestamp: WebhookTimestamp): Awaitable<void>;
}

/** Options of {@link memoryLatestTimestamps}. */
export interface MemoryLatestTimestampsOptions {
  /** For how many keys a time is kept; beyond it the one that was used least recently is forgotten. Default 100,000. */
  readonly max?: number | undefined;
}

/** Keeps the times in this process: a restart, or another process, knows nothing of them. Throws a TypeError on a bad option. */
export function memoryLatestTimestamps(options: MemoryLatestTimestampsOptions = {}): LatestTimestamps {
  const factory = "memoryLatestTimestamps";
  assertKnownOptions(factory, options, ["max"]);
  const max = integerOption(factory, "max", options.max, { min: 1, max: 10_000_000, fallback: 100_000 });
  const times = new LRUCache<string, WebhookTimestamp>({ max });
  return {
    get: (key) => times.get(key),
    set: (key, timestamp) => {
      times.set(key, timestamp);
    },
  };
}
