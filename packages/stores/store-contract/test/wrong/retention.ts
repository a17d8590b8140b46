import type { IdempotencyRecord } from "@countersign/idempotency";
import { dayMs } from "../platform.ts";
import { type WrongStore, decide, isExpired, ownerOf } from "./wrong-store.ts";

/** Wrong at the retention of done keys and at pruning. */
export const wrongRetention: readonly WrongStore[] = [
  {
    does: "forgets a done key two milliseconds early",
    platform: { retentionMs: dayMs - 2 },
  },
  {
    does: "never forgets a done key",
    fails: "pruning leaves a",
    platform: { retentionMs: 300 * dayMs },
  },
  {
    does: "removes expired runs when it prunes",
    wrong: (platform) => ({
      prune() {
        for (const { key } of platform.memory.list({ state: "run", limit: 1_000 }).entries) {
          if (isExpired(platform, key)) platform.memory.release(key, ownerOf(platform, key, ""));
        }
        return platform.store.prune();
      },
    }),
  },
  {
    does: "removes held keys after the retention when it prunes",
    wrong: ({ store, memory, clock }) => {
      const beganAtMs = clock.nowMs;
      return {
        prune() {
          for (const { key } of memory.list({ state: "held", limit: 1_000 }).entries) {
            if (clock.nowMs - beganAtMs > dayMs) decide({ memory }, key, "released");
          }
          return store.prune();
        },
      };
    },
  },
  {
    does: "removes one done key at a time",
    wrong: ({ store }) => {
      let waiting = 0;
      return {
        async prune() {
          waiting += await store.prune();
          const removed = Math.min(waiting, 1);
          waiting -= removed;
          return removed;
        },
      };
    },
  },
  {
    does: "prunes done keys at once",
    fails: "retentions are measured",
    wrong: ({ store, memory }) => {
      const pruned = new Set<string>();
      const isPruned = (key: string) => pruned.has(key) && memory.read(key)?.state === "done";
      return {
        read: (key) => (isPruned(key) ? undefined : store.read(key)),
        prune() {
          for (const { key } of memory.list({ state: "done", limit: 1_000 }).entries) pruned.add(key);
          return store.prune();
        },
      };
    },
  },
  {
    does: "begins the retention anew at a repeated completion",
    wrong: ({ store, memory, clock }) => {
      const kept = new Map<string, { record: IdempotencyRecord; untilMs: number }>();
      return {
        complete(key, token) {
          const record = memory.read(key);
          if (record?.state === "done" && record.token === token) {
            kept.set(key, { record, untilMs: clock.nowMs + dayMs });
          }
          return store.complete(key, token);
        },
        read(key) {
          const later = kept.get(key);
          return later !== undefined && later.untilMs > clock.nowMs ? later.record : store.read(key);
        },
      };
    },
  },
];
