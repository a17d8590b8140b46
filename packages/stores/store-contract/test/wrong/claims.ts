import { type WrongStore, acquired, clockAheadMs, isExpired, ownerOf, runOf } from "./wrong-store.ts";

/** Wrong at claiming and reading, each in one respect alone. */
export const wrongClaims: readonly WrongStore[] = [
  {
    does: "shows nothing of what is left of a lease",
    fails: "leases are measured",
    wrong: ({ store }) => ({
      async read(key) {
        const record = await store.read(key);
        return record?.state === "run" ? { ...record, remainingMs: 0 } : record;
      },
    }),
  },
  {
    does: "tells a duplicate its own fingerprint",
    wrong: ({ store }) => ({
      async claim(key, claim) {
        const result = await store.claim(key, claim);
        return result.status === "in-flight" ? { ...result, fingerprint: claim.fingerprint } : result;
      },
    }),
  },
  {
    does: "takes a live owner's own claim for another's",
    fails: "after the engine is back the",
    wrong: (platform) => ({
      claim(key, claim) {
        const run = runOf(platform, key);
        if (run === undefined || run.remainingMs <= 0) return platform.store.claim(key, claim);
        return { status: "in-flight", fingerprint: run.fingerprint, remainingMs: run.remainingMs };
      },
    }),
  },
  {
    does: "gives a live owner's own claim another fence",
    fails: "of two steps at once on a released",
    wrong: (platform) => ({
      claim(key, claim) {
        const run = runOf(platform, key);
        if (run?.token === claim.token && run.remainingMs > 0) platform.memory.release(key, claim.token);
        return platform.store.claim(key, claim);
      },
    }),
  },
  {
    does: "leaves the lease as it is at a live owner's own claim",
    wrong: (platform) => ({
      claim(key, claim) {
        const run = runOf(platform, key);
        if (run?.token === claim.token && run.remainingMs > 0) return acquired(run.fence);
        return platform.store.claim(key, claim);
      },
    }),
  },
  {
    does: "forgets the reason of a held key",
    fails: "hostile tokens, fingerprints,",
    wrong: ({ store }) => ({
      async claim(key, claim) {
        const result = await store.claim(key, claim);
        return result.status === "held" && result.reason !== "lease-expired"
          ? { ...result, reason: "" }
          : result;
      },
    }),
  },
  {
    does: "holds an expired run that is read",
    wrong: (platform) => ({
      read(key) {
        if (isExpired(platform, key)) platform.memory.hold(key, ownerOf(platform, key, ""), "lease-expired");
        return platform.store.read(key);
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
    fails: "leases are measured",
    wrong: ({ store }) => ({
      claim: (key, claim) =>
        store.claim(key, { ...claim, leaseMs: claim.leaseMs + Math.max(0, clockAheadMs()) }),
    }),
  },
  {
    does: "shortens leases by what the process is behind",
    fails: "leases are measured",
    wrong: ({ store }) => ({
      claim: (key, claim) =>
        store.claim(key, { ...claim, leaseMs: claim.leaseMs + Math.min(0, clockAheadMs()) }),
    }),
  },
  {
    does: "gives every attempt the fence 1",
    fails: "a fence is",
    wrong: ({ store }) => ({
      async claim(key, claim) {
        const result = await store.claim(key, claim);
        return result.status === "acquired" ? acquired(1) : result;
      },
    }),
  },
  {
    does: "takes one millisecond from a lease at a heartbeat",
    wrong: ({ store }) => ({ heartbeat: (key, token, leaseMs) => store.heartbeat(key, token, leaseMs - 1) }),
  },
];
