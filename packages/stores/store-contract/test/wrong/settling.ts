import { dayMs } from "../platform.ts";
import {
  type WrongStores,
  acquired,
  decide,
  each,
  instead,
  isExpired,
  ownerOf,
  reference,
  runOf,
  stateOf,
} from "./wrong-store.ts";
import type { IdempotencyRecord } from "@countersign/idempotency";

/** Wrong about who ends a key and for how long, and stores that say the right thing and do another. */
export const wrongSettling: WrongStores = {
  [reference]: {
    ...each(["done", "held"], (state) => [
      `refuses to complete a key that is ${state}`,
      instead("complete", (platform, key, token) =>
        stateOf(platform, key) === state ? "lost" : platform.store.complete(key, token),
      ),
    ]),
    "lets anybody complete a held key": instead("complete", (platform, key, token) =>
      platform.store.complete(key, stateOf(platform, key) === "held" ? ownerOf(platform, key, token) : token),
    ),
    "releases a held key for its owner": instead("release", (platform, key, token) => {
      const isOwn = stateOf(platform, key) === "held" && ownerOf(platform, key, "") === token;
      if (!isOwn) return platform.store.release(key, token);
      decide(platform, key, "released");
      return "ok";
    }),
    "lets go of a held key with the lease of its run": ({ store, memory, clock }) => {
      const ends = new Map<string, number>();
      return {
        claim(key, claim) {
          const isHeld = memory.read(key)?.state === "held";
          if (isHeld && clock.nowMs >= (ends.get(key) ?? Infinity)) decide({ memory }, key, "released");
          const result = store.claim(key, claim);
          if (memory.read(key)?.token === claim.token) ends.set(key, clock.nowMs + claim.leaseMs);
          return result;
        },
      };
    },
    "says ok to the completion of a held key and keeps it held": instead("complete", (platform, key, token) =>
      stateOf(platform, key) === "held" && ownerOf(platform, key, "") === token
        ? "ok"
        : platform.store.complete(key, token),
    ),
    "does not resolve an expired run as done": instead("resolve", (platform, key, outcome, decision) =>
      outcome === "done" && runOf(platform, key) !== undefined
        ? "not-held"
        : platform.store.resolve(key, outcome, decision),
    ),
    "completes for its owner what it has forgotten": ({ store, memory }) => {
      const completed = new Map<string, string>();
      return {
        async complete(key, token) {
          if (memory.read(key) === undefined && completed.get(key) === token) return "ok";
          completed.set(key, token);
          return store.complete(key, token);
        },
      };
    },
    "forgets a done key two milliseconds early": { platform: { retentionMs: dayMs - 2 } },
    "removes expired runs when it prunes": instead("prune", (platform) => {
      for (const { key } of platform.memory.list({ state: "running", limit: 1_000 }).entries) {
        if (isExpired(platform, key)) platform.memory.release(key, ownerOf(platform, key, ""));
      }
      return platform.store.prune();
    }),
    "removes held keys after the retention when it prunes": ({ store, memory, clock }) => {
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
    "removes one done key at a time": ({ store }) => {
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
    "begins the retention anew at a repeated completion": ({ store, memory, clock }) => {
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
  "of two steps at once on an": {
    "completes a released key for who released it": ({ store, memory }) => {
      const released = new Map<string, string>();
      return {
        async release(key, token) {
          const answer = await store.release(key, token);
          if (answer === "ok") released.set(key, token);
          return answer;
        },
        complete(key, token) {
          if (memory.read(key) === undefined && released.get(key) === token) {
            memory.claim(key, { token, fingerprint: "", leaseMs: 1, recovery: "hold" });
          }
          return store.complete(key, token);
        },
      };
    },
    "says ok to a repeated release": (platform) => {
      const released = new Map<string, string>();
      return {
        async release(key, token) {
          if (released.get(key) === token && stateOf(platform, key) === undefined) return "ok";
          const answer = await platform.store.release(key, token);
          if (answer === "ok") released.set(key, token);
          return answer;
        },
      };
    },
  },
  "the fence grows over": {
    "says ok to a release and keeps the run": instead("release", (platform, key, token) =>
      runOf(platform, key)?.token === token ? "ok" : "lost",
    ),
  },
  "of two steps at once on a held": {
    "completes for whoever has ever owned the key": (platform) => {
      const owners = new Map<string, Set<string>>();
      return {
        async claim(key, claim) {
          const result = await platform.store.claim(key, claim);
          const known = owners.get(key) ?? new Set();
          if (result.status === "acquired") owners.set(key, known.add(claim.token));
          return result;
        },
        complete(key, token) {
          const isKnown = owners.get(key)?.has(token) === true;
          return platform.store.complete(key, isKnown ? ownerOf(platform, key, token) : token);
        },
      };
    },
  },
  "a full store": {
    "takes a key for which it has no room, and throws": ({ store, memory }) => {
      const taken = new Map<string, string>();
      return {
        claim(key, claim) {
          try {
            return store.claim(key, claim);
          } catch (error) {
            taken.set(key, claim.token);
            throw error;
          }
        },
        read(key) {
          const record = store.read(key);
          const token = taken.get(key);
          return memory.read(key) === undefined && token !== undefined
            ? { state: "running", token, fence: 1, fingerprint: "", remainingMs: 1 }
            : record;
        },
      };
    },
    "gives a held key away when it has no room": ({ store, memory }) => {
      let isFull = false;
      return {
        claim(key, claim) {
          if (isFull && memory.read(key)?.state === "held") return acquired(1_000_000);
          try {
            return store.claim(key, claim);
          } catch (error) {
            isFull = true;
            throw error;
          }
        },
      };
    },
  },
  "pruning leaves a": {
    "never forgets a done key": { platform: { retentionMs: 300 * dayMs } },
  },
  "retentions are measured": {
    "prunes done keys at once": ({ store, memory }) => {
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
};
