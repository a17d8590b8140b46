import { type WrongStore, acquired, clockAheadMs, isExpired, ownerOf, runOf } from "./wrong-store.ts";

/** Wrong in what they show, and in leases: each in one respect alone. */
export const wrongDetails: readonly WrongStore[] = [
  {
    does: "shows the fingerprint of a duplicate that it refused",
    fails: [
      "a key in flight is refused to others, with its owner's fingerprint and what is left of the lease",
    ],
    wrong: ({ store }) => {
      const shown = new Map<string, string>();
      return {
        async claim(key, claim) {
          const result = await store.claim(key, claim);
          if (result.status === "in-flight") shown.set(key, claim.fingerprint);
          return result;
        },
        async read(key) {
          const record = await store.read(key);
          const fingerprint = shown.get(key);
          return record === undefined || fingerprint === undefined ? record : { ...record, fingerprint };
        },
      };
    },
  },
  {
    does: "shows the fingerprint of a duplicate of a done key",
    fails: ["a claim of a done or held key says so to everybody, its owner included, and changes nothing"],
    wrong: ({ store }) => {
      const shown = new Map<string, string>();
      return {
        async claim(key, claim) {
          const result = await store.claim(key, claim);
          if (result.status === "done") shown.set(key, claim.fingerprint);
          return result;
        },
        async read(key) {
          const record = await store.read(key);
          const fingerprint = shown.get(key);
          return record === undefined || fingerprint === undefined ? record : { ...record, fingerprint };
        },
      };
    },
  },
  {
    does: "shows no fence of a run",
    fails: [
      "an absent key is given to its first claim, and reads as a run of its token",
      "a key in flight is refused to others, with its owner's fingerprint and what is left of the lease",
      "reading changes nothing, not even an expired run",
      "under recovery rerun an expired run becomes a run of the claim",
      "hostile keys of up to 512 characters are all taken, and kept apart",
      "hostile tokens, fingerprints and reasons are given back unchanged",
      "list gives the keys in a state, with the records that are read, and no others",
      "resolve decides on a run whose lease has expired",
      "a key that an operator resolved as done is remembered as long as any other",
      "completeIn is lost to an owner whose key an operator has resolved, so that its payment is rolled back",
      "list gives the decisions that are read",
    ],
    wrong: ({ store }) => ({
      async read(key) {
        const record = await store.read(key);
        return record?.state === "run" ? { ...record, fence: 0 } : record;
      },
    }),
  },
  {
    does: "shows a millisecond of an expired lease",
    fails: [
      "reading changes nothing, not even an expired run",
      "a heartbeat of a stranger is lost in every state, and moves no lease",
    ],
    wrong: ({ store }) => ({
      async read(key) {
        const record = await store.read(key);
        return record?.state === "run"
          ? { ...record, remainingMs: record.remainingMs < 0 ? 1 : record.remainingMs }
          : record;
      },
    }),
  },
  {
    does: "lists a millisecond of an expired lease",
    fails: ["list gives an expired run as a run of which nothing remains"],
    wrong: ({ memory }) => ({
      list(query) {
        const { entries, cursor } = memory.list(query);
        const shown = entries.map(({ key, record }) => ({
          key,
          record: record.state === "run" ? { ...record, remainingMs: 1 } : record,
        }));
        return { entries: shown, cursor };
      },
    }),
  },
  {
    does: "revives an expired run at a stranger's heartbeat",
    fails: ["a heartbeat of a stranger is lost in every state, and moves no lease"],
    wrong: (platform) => ({
      heartbeat(key, token, leaseMs) {
        const owner = ownerOf(platform, key, token);
        if (isExpired(platform, key) && owner !== token) platform.memory.heartbeat(key, owner, leaseMs);
        return platform.store.heartbeat(key, token, leaseMs);
      },
    }),
  },
  {
    does: "refuses the release of an owner whose lease has expired",
    fails: ["an owner whose lease has expired and whose key nobody took settles it as before"],
    wrong: (platform) => ({
      release: (key, token) => (isExpired(platform, key) ? "lost" : platform.store.release(key, token)),
    }),
  },
  {
    does: "refuses the hold of an owner whose lease has expired",
    fails: ["an owner whose lease has expired and whose key nobody took settles it as before"],
    wrong: (platform) => ({
      hold: (key, token, reason) =>
        isExpired(platform, key) ? "lost" : platform.store.hold(key, token, reason),
    }),
  },
  {
    does: "begins no lease at its owner's claim of an expired run",
    fails: ["the owner's own claim after its lease has expired is acquired with the same fence"],
    wrong: (platform) => ({
      claim(key, claim) {
        const run = runOf(platform, key);
        return run?.token === claim.token && run.remainingMs <= 0
          ? acquired(run.fence)
          : platform.store.claim(key, claim);
      },
    }),
  },
  {
    does: "lengthens leases by what the process is ahead",
    fails: ["leases are measured by the store's clock, whatever the process thinks of the time"],
    wrong: ({ store }) => ({
      claim: (key, claim) =>
        store.claim(key, { ...claim, leaseMs: claim.leaseMs + Math.max(0, clockAheadMs()) }),
    }),
  },
  {
    does: "shortens leases by what the process is behind",
    fails: ["leases are measured by the store's clock, whatever the process thinks of the time"],
    wrong: ({ store }) => ({
      claim: (key, claim) =>
        store.claim(key, { ...claim, leaseMs: claim.leaseMs + Math.min(0, clockAheadMs()) }),
    }),
  },
];
