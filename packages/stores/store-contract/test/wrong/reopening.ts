import { dayMs } from "../platform.ts";
import { type WrongStore, ownerOf, roundTrip, stateOf } from "./wrong-store.ts";

/** Wrong at taking an operator's decision back. */
export const wrongReopening: readonly WrongStore[] = [
  {
    does: "never reopens",
    fails: ["hostile names, notes and"],
    wrong: ({ store }) => ({
      async reopen(key) {
        await store.read(key);
        return "not-decided" as const;
      },
    }),
  },
  {
    does: "says that it reopens what an attempt has done",
    wrong: ({ store, memory }) => ({
      reopen(key, decision) {
        const record = memory.read(key);
        const isOwn = record?.state === "done" && record.decision?.fence !== record.fence;
        return isOwn && record.fence === decision.fence ? "ok" : store.reopen(key, decision);
      },
    }),
  },
  {
    does: "says that it reopens what is held",
    wrong: (platform) => ({
      reopen: (key, decision) =>
        stateOf(platform, key) === "held" && platform.memory.read(key)?.fence === decision.fence
          ? "ok"
          : platform.store.reopen(key, decision),
    }),
  },
  {
    does: "takes a released key that was claimed since from its run",
    fails: ["of a reopening and"],
    wrong: (platform) => ({
      reopen(key, decision) {
        const record = platform.memory.read(key);
        if (record?.state !== "run" || record.decision?.fence !== decision.fence)
          return platform.store.reopen(key, decision);
        platform.memory.hold(key, record.token, record.decision.reason);
        return "ok";
      },
    }),
  },
  {
    does: "reopens by any fence",
    wrong: ({ store, memory }) => ({
      reopen(key, decision) {
        const fence = memory.read(key)?.fence ?? memory.readReleased(key)?.fence ?? 0;
        return store.reopen(key, { ...decision, fence });
      },
    }),
  },
  {
    does: "leaves the key its fence at a reopening",
    wrong: ({ store, memory }) => {
      const isReopened = (key: string, fence: number): boolean => {
        const decision = memory.read(key)?.decision;
        return decision?.reopened !== undefined && decision.fence === fence;
      };
      return {
        async read(key) {
          const record = await store.read(key);
          const { decision } = record ?? {};
          return record && decision?.reopened ? { ...record, fence: decision.fence } : record;
        },
        resolve(key, outcome, decision) {
          const fence = memory.read(key)?.fence ?? 0;
          const isSame = isReopened(key, decision.fence);
          return store.resolve(key, outcome, isSame ? { ...decision, fence } : decision);
        },
      };
    },
  },
  {
    does: "gives the next attempt the fence of the reopening",
    wrong: ({ store, memory }) => {
      const reopened = new Map<string, number>();
      return {
        async reopen(key, decision) {
          const answer = await store.reopen(key, decision);
          if (answer === "ok") reopened.set(key, memory.read(key)?.fence ?? 0);
          return answer;
        },
        async claim(key, claim) {
          const result = await store.claim(key, claim);
          const fence = reopened.get(key);
          return result.status === "acquired" && fence !== undefined ? { ...result, fence } : result;
        },
      };
    },
  },
  {
    does: "gives a reopened key back to its old owner",
    wrong: (platform) => {
      const owners = new Map<string, string>();
      return {
        resolve(key, outcome, decision) {
          owners.set(key, ownerOf(platform, key, ""));
          return platform.store.resolve(key, outcome, decision);
        },
        complete(key, token) {
          const isOwn = owners.get(key) === token && stateOf(platform, key) === "held";
          return platform.store.complete(key, isOwn ? ownerOf(platform, key, token) : token);
        },
      };
    },
  },
  {
    does: "lets the old owner of a reopened key complete it in a transaction",
    wrong: (platform) => {
      const owners = new Map<string, string>();
      return {
        resolve(key, outcome, decision) {
          owners.set(key, ownerOf(platform, key, ""));
          return platform.store.resolve(key, outcome, decision);
        },
        completeIn(tx, key, token) {
          const isOwn = owners.get(key) === token && stateOf(platform, key) === "held";
          const known = isOwn ? ownerOf(platform, key, token) : token;
          return platform.store.completeIn?.(tx, key, known) ?? "lost";
        },
      };
    },
  },
  {
    does: "looks first and reopens later",
    fails: ["of a reopening and"],
    wrong: ({ store, memory }) => ({
      async reopen(key, decision) {
        const wasReleased = memory.readReleased(key)?.decision.fence === decision.fence;
        await roundTrip();
        const answer = await store.reopen(key, decision);
        return wasReleased ? "ok" : answer;
      },
    }),
  },
  {
    does: "removes a reopened key after the retention of its decision",
    wrong: ({ store, memory, clock }) => {
      let prunedMs = -Infinity;
      return {
        prune() {
          prunedMs = clock.nowMs;
          return store.prune();
        },
        read(key) {
          const decision = memory.read(key)?.decision;
          const isGone = decision?.reopened !== undefined && prunedMs - decision.at > dayMs;
          return isGone ? undefined : store.read(key);
        },
      };
    },
  },
];
