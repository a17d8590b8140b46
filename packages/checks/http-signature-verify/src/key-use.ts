import { channels, type PublishedEvents } from "@countersign/core";
import { option, readOptions, systemClock, type OptionTable } from "@countersign/core/internal";
import { LRUCache } from "lru-cache";

export interface KeyUseOptions {
  /** Keys remembered at most; those that were idle longest are forgotten. Default 1,000. */
  readonly max?: number | undefined;
  /** Milliseconds since 1970; default Date.now. */
  readonly clock?: (() => number) | undefined;
}

export const table: OptionTable<KeyUseOptions> = {
  max: option.integer({ min: 1, max: 100_000, fallback: 1000 }),
  clock: option.clock(systemClock, "Date.now"),
};

export interface KeyUse {
  readonly keyid: string;
  readonly subject: string | undefined;
  readonly count: number;
  /** Unix seconds. */
  readonly firstUsed: number;
  /** Unix seconds. */
  readonly lastUsed: number;
}

export interface KeyUseTable {
  /** The key used last comes first; one that was never used is not there. */
  entries(): readonly KeyUse[];
  close(): void;
}

/** Counts the uses of keys in this process from now on. An operator sees when an old key is idle. */
export function keyUse(options: KeyUseOptions = {}): KeyUseTable {
  const { max, clock } = readOptions("keyUse", table, options);
  const uses = new LRUCache<string, KeyUse>({ max });
  const count = (event: unknown): void => {
    if (!isKeyUseEvent(event)) return;
    const { keyid, subject } = event;
    const now = Math.floor(clock() / 1000);
    const before = uses.get(keyid) ?? { firstUsed: now, count: 0 };
    uses.set(keyid, { keyid, subject, count: before.count + 1, firstUsed: before.firstUsed, lastUsed: now });
  };
  channels.keyUse.subscribe(count);
  return {
    entries: () => [...uses.values()],
    close() {
      channels.keyUse.unsubscribe(count);
    },
  };
}

// Any module of the process can publish on a channel.
function isKeyUseEvent(event: unknown): event is PublishedEvents["keyUse"] {
  return typeof event === "object" && event !== null && "keyid" in event && typeof event.keyid === "string";
}
