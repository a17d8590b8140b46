import { type Store, dayMs } from "../platform.ts";
import { type WrongStore, ownerOf, roundTrip, stateOf } from "./wrong-store.ts";

export const wrongReopening: readonly WrongStore[] = [
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
    fails: "of two steps at once on a key that an",
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
  ...(["complete", "completeIn"] as const).map((method): WrongStore => ({
    does: `lets the old owner of a reopened key end it by ${method}()`,
    wrong: (platform) => {
      const owners = new Map<string, string>();
      const known = (key: string, token: string): string =>
        owners.get(key) === token && stateOf(platform, key) === "held"
          ? ownerOf(platform, key, token)
          : token;
      const { store } = platform;
      const ends: Partial<Store> = {
        complete: (key, token) => store.complete(key, known(key, token)),
        completeIn: (tx, key, token) => store.completeIn?.(tx, key, known(key, token)) ?? "lost",
      };
      return {
        resolve(key, outcome, decision) {
          owners.set(key, ownerOf(platform, key, ""));
          return store.resolve(key, outcome, decision);
        },
        [method]: ends[method],
      };
    },
  })),
  {
    does: "looks first and reopens later",
    fails: "of two steps at once on a key that an",
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
