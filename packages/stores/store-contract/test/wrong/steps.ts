import { type WrongStore, acquired } from "./wrong-store.ts";

/** Wrong at one step, in a way that no other store here is. */
export const wrongSteps: readonly WrongStore[] = [
  {
    does: "holds an expired run under recovery rerun",
    fails: [
      "of many concurrent claims of an expired run exactly",
      "of many concurrent claims of an expired run through",
      "leases are measured by",
      "a step that waited",
    ],
    wrong: ({ store }) => ({ claim: (key, claim) => store.claim(key, { ...claim, recovery: "hold" }) }),
  },
  {
    does: "gives every attempt the fence 1",
    fails: [
      "of a reopening and",
      "the fence grows when",
      "the fence grows over",
      "a fence is as",
      "hostile keys of up",
      "hostile tokens, fingerprints and",
      "every step finds a",
      "hostile names, notes and",
      "after the engine is back it",
    ],
    wrong: ({ store }) => ({
      async claim(key, claim) {
        const result = await store.claim(key, claim);
        return result.status === "acquired" ? acquired(1) : result;
      },
    }),
  },
  {
    does: "gives a lease one millisecond more",
    wrong: ({ store }) => ({
      claim: (key, claim) => store.claim(key, { ...claim, leaseMs: claim.leaseMs + 1 }),
    }),
  },
  {
    does: "takes one millisecond from a lease at a heartbeat",
    wrong: ({ store }) => ({ heartbeat: (key, token, leaseMs) => store.heartbeat(key, token, leaseMs - 1) }),
  },
  {
    does: "gives a done key away",
    fails: [
      "an expired run is",
      "retentions are measured by",
      "hostile keys of up",
      "a full store refuses",
      "completeIn is seen by",
    ],
    wrong: ({ store }) => ({
      async claim(key, claim) {
        const result = await store.claim(key, claim);
        return result.status === "done" ? acquired(1_000_000) : result;
      },
    }),
  },
  {
    does: "shows the old owner on a reopened key",
    wrong: ({ store, memory }) => {
      const owners = new Map<string, string>();
      return {
        resolve(key, outcome, decision) {
          owners.set(key, memory.read(key)?.token ?? "");
          return store.resolve(key, outcome, decision);
        },
        async read(key) {
          const record = await store.read(key);
          const token = owners.get(key);
          return record?.decision?.reopened && token !== undefined ? { ...record, token } : record;
        },
      };
    },
  },
  {
    does: "hides an expired run",
    wrong: ({ store }) => ({
      async read(key) {
        const record = await store.read(key);
        return record?.state === "run" && record.remainingMs <= 0 ? undefined : record;
      },
    }),
  },
  {
    does: "counts one too many when it prunes",
    fails: ["retentions are measured by"],
    wrong: ({ store }) => ({ prune: async () => (await store.prune()) + 1 }),
  },
];
