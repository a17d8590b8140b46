import { type WrongStore, acquired, isExpired, ownerOf, runOf } from "./wrong-store.ts";

/** Wrong at claiming and reading. */
export const wrongClaims: readonly WrongStore[] = [
  {
    does: "shows nothing of what is left of a lease",
    fails: ["leases are measured by"],
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
    does: "tells a duplicate when the lease ends, not in how long",
    wrong: ({ store, clock }) => ({
      async claim(key, claim) {
        const result = await store.claim(key, claim);
        if (result.status !== "in-flight") return result;
        return { ...result, remainingMs: result.remainingMs + clock.nowMs };
      },
    }),
  },
  {
    does: "takes a live owner's own claim for another's",
    fails: ["concurrent repetitions of one"],
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
    fails: ["concurrent repetitions of one"],
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
    does: "gives a done key to the token that completed it",
    wrong: ({ store, memory }) => ({
      claim(key, claim) {
        const record = memory.read(key);
        const isOwn = record?.state === "done" && record.token === claim.token;
        return isOwn ? acquired(record.fence) : store.claim(key, claim);
      },
    }),
  },
  {
    does: "forgets the reason of a held key",
    fails: ["hostile tokens, fingerprints and"],
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
];
