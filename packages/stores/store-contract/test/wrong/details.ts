import { type WrongStore, acquired, clockAheadMs, isExpired, ownerOf, runOf } from "./wrong-store.ts";

/** Wrong in what they show, and in leases: each in one respect alone. */
export const wrongDetails: readonly WrongStore[] = [
  {
    does: "shows the fingerprint of a duplicate that it refused",
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
    fails: ["hostile keys of up", "hostile tokens, fingerprints and"],
    wrong: ({ store }) => ({
      async read(key) {
        const record = await store.read(key);
        return record?.state === "run" ? { ...record, fence: 0 } : record;
      },
    }),
  },
  {
    does: "shows a millisecond of an expired lease",
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
    wrong: (platform) => ({
      release: (key, token) => (isExpired(platform, key) ? "lost" : platform.store.release(key, token)),
    }),
  },
  {
    does: "refuses the hold of an owner whose lease has expired",
    wrong: (platform) => ({
      hold: (key, token, reason) =>
        isExpired(platform, key) ? "lost" : platform.store.hold(key, token, reason),
    }),
  },
  {
    does: "begins no lease at its owner's claim of an expired run",
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
    fails: ["leases are measured by"],
    wrong: ({ store }) => ({
      claim: (key, claim) =>
        store.claim(key, { ...claim, leaseMs: claim.leaseMs + Math.max(0, clockAheadMs()) }),
    }),
  },
  {
    does: "shortens leases by what the process is behind",
    fails: ["leases are measured by"],
    wrong: ({ store }) => ({
      claim: (key, claim) =>
        store.claim(key, { ...claim, leaseMs: claim.leaseMs + Math.min(0, clockAheadMs()) }),
    }),
  },
];
