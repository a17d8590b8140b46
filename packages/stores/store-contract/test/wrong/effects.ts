import { type WrongStore, acquired, isExpired, ownerOf, roundTrip, runOf, stateOf } from "./wrong-store.ts";

/** Stores that say the right thing and do another, or do it later. */
export const wrongEffects: readonly WrongStore[] = [
  {
    does: "says ok to the completion of a held key and keeps it held",
    wrong: (platform) => ({
      complete: (key, token) =>
        stateOf(platform, key) === "held" && ownerOf(platform, key, "") === token
          ? "ok"
          : platform.store.complete(key, token),
    }),
  },
  {
    does: "does not resolve an expired run as done",
    wrong: (platform) => ({
      resolve: (key, outcome, decision) =>
        outcome === "done" && runOf(platform, key) !== undefined
          ? "not-held"
          : platform.store.resolve(key, outcome, decision),
    }),
  },
  {
    does: "completes for its owner what it has forgotten",
    wrong: ({ store, memory }) => {
      const completed = new Map<string, string>();
      return {
        async complete(key, token) {
          if (memory.read(key) === undefined && completed.get(key) === token) return "ok";
          completed.set(key, token);
          return store.complete(key, token);
        },
      };
    },
  },
  {
    does: "decides on a claim first and waits for the transaction then",
    fails: "while a transaction",
    ignores: "locks",
    wrong: (platform) => {
      const undone = new Map<string, string>();
      return {
        async claim(key, claim) {
          if (!platform.locks.has(key) || !isExpired(platform, key)) return platform.store.claim(key, claim);
          do await roundTrip();
          while (platform.locks.has(key));
          undone.set(key, claim.token);
          return acquired(1_000_000);
        },
        async read(key) {
          const record = await platform.store.read(key);
          const token = undone.get(key);
          return record === undefined || token === undefined
            ? record
            : { ...record, state: "run", token, remainingMs: 1 };
        },
      };
    },
  },
  {
    does: "takes a key for which it has no room, and throws",
    fails: "a full store",
    wrong: ({ store, memory }) => {
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
            ? { state: "run", token, fence: 1, fingerprint: "", remainingMs: 1 }
            : record;
        },
      };
    },
  },
  {
    does: "gives a held key away when it has no room",
    fails: "a full store",
    wrong: ({ store, memory }) => {
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
];
