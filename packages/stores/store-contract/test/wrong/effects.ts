import { type WrongStore, acquired, isExpired, ownerOf, roundTrip, runOf, stateOf } from "./wrong-store.ts";

/** Stores that say the right thing and do another, or do it later. */
export const wrongEffects: readonly WrongStore[] = [
  {
    does: "forgets the fingerprint of a done key",
    fails: [
      "complete makes the owner's run done, and is ok again when its reply was lost",
      "resolve as done makes a held key done, once, with the fence and the fingerprint of its attempt",
      "completeIn makes the key done with the commit",
      "list gives the keys in a state, with the records that are read, and no others",
      "list leaves out done keys whose retention has ended",
      "list gives the decisions that are read",
    ],
    wrong: ({ store }) => ({
      async read(key) {
        const record = await store.read(key);
        return record?.state === "done" ? { ...record, fingerprint: "" } : record;
      },
    }),
  },
  {
    does: "says ok to the completion of a held key and keeps it held",
    fails: ["complete by the owner ends a held key, whoever held it"],
    wrong: (platform) => ({
      complete: (key, token) =>
        stateOf(platform, key) === "held" && ownerOf(platform, key, "") === token
          ? "ok"
          : platform.store.complete(key, token),
    }),
  },
  {
    does: "ends the run of another at a release that it calls lost",
    fails: ["an owner whose key was taken over has lost it, whatever it tries"],
    wrong: (platform) => {
      const former = new Map<string, string>();
      return {
        claim(key, claim) {
          const owner = ownerOf(platform, key, claim.token);
          if (owner !== claim.token) former.set(key, owner);
          return platform.store.claim(key, claim);
        },
        release(key, token) {
          const run = runOf(platform, key);
          if (run === undefined || former.get(key) !== token) return platform.store.release(key, token);
          platform.memory.release(key, run.token);
          return "lost";
        },
      };
    },
  },
  {
    does: "ends a live run when it is resolved, and calls it not held",
    fails: [
      "resolve has nothing to decide on a live run, a done key and an absent one",
      "leases are measured by the store's clock, whatever the process thinks of the time",
      "resolve with any other fence than the attempt's decides nothing",
      "a decision about an earlier attempt ends no later one, whether it runs, has expired or is held",
    ],
    wrong: (platform) => ({
      async resolve(key, outcome, decision) {
        const run = runOf(platform, key);
        const answer = await platform.store.resolve(key, outcome, decision);
        if (run !== undefined && answer === "not-held") platform.memory.release(key, run.token);
        return answer;
      },
    }),
  },
  {
    does: "completes a key that an operator released for its late owner",
    fails: [
      "of two steps at once on an expired run one comes first, and the other one sees it",
      "of two steps at once on a held key one comes first, and the other one sees it",
      "resolve as released makes a held key absent, once, and its late owner has lost it",
      "resolve takes the key from its owner, who has lost it, whatever it tries when it wakes up",
    ],
    wrong: (platform) => {
      const late = new Map<string, string>();
      return {
        async resolve(key, outcome, decision) {
          const owner = ownerOf(platform, key, "");
          const answer = await platform.store.resolve(key, outcome, decision);
          if (answer === "ok" && outcome === "released") late.set(key, owner);
          return answer;
        },
        complete: (key, token) =>
          late.get(key) === token && stateOf(platform, key) === undefined
            ? "ok"
            : platform.store.complete(key, token),
      };
    },
  },
  {
    does: "does not resolve an expired run as done",
    fails: [
      "resolve decides on a run whose lease has expired",
      "resolve takes the key from its owner, who has lost it, whatever it tries when it wakes up",
      "resolve with any other fence than the attempt's decides nothing",
      "a key that an operator resolved as done is remembered as long as any other",
      "completeIn is lost to an owner whose key an operator has resolved, so that its payment is rolled back",
      "a decision about an expired run keeps the reason of one",
    ],
    wrong: (platform) => ({
      resolve: (key, outcome, decision) =>
        outcome === "done" && runOf(platform, key) !== undefined
          ? "not-held"
          : platform.store.resolve(key, outcome, decision),
    }),
  },
  {
    does: "completes for its owner what it has forgotten",
    fails: ["a done key is absent after its retention, pruned or not"],
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
    does: "tells a claim that waited for a transaction that it has the key",
    fails: ["while a transaction that completes a key is open, no other step takes or settles the key"],
    ignores: "locks",
    wrong: (platform) => ({
      async claim(key, claim) {
        if (!platform.locks.has(key) || !isExpired(platform, key)) return platform.store.claim(key, claim);
        do await roundTrip();
        while (platform.locks.has(key));
        return acquired(1_000_000);
      },
    }),
  },
  {
    does: "decides on a claim first and waits for the transaction then",
    fails: ["while a transaction that completes a key is open, no other step takes or settles the key"],
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
    fails: ["a full store refuses a further key by a throw, and evicts nothing that is alive"],
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
    fails: ["a full store refuses a further key by a throw, and evicts nothing that is alive"],
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
