import { type WrongStore, acquired, isExpired, ownerOf, runOf } from "./wrong-store.ts";

/** Wrong at claiming and reading. */
export const wrongClaims: readonly WrongStore[] = [
  {
    does: "shows nothing of what is left of a lease",
    fails: [
      "an absent key is given to its first claim, and reads as a run of its token",
      "a lease is live until its last millisecond and has expired at its end",
      "a heartbeat of a stranger is lost in every state, and moves no lease",
      "leases are measured by the store's clock, whatever the process thinks of the time",
      "a claim leaves a lease alone that ends within the claim's own",
    ],
    wrong: ({ store }) => ({
      async read(key) {
        const record = await store.read(key);
        return record?.state === "run" ? { ...record, remainingMs: 0 } : record;
      },
    }),
  },
  {
    does: "tells a duplicate its own fingerprint",
    fails: [
      "a lease is live until its last millisecond and has expired at its end",
      "a key in flight is refused to others, with its owner's fingerprint and what is left of the lease",
      "a claim leaves the owner no more of its lease than the claim's own, and that really ends",
      "a claim leaves a lease alone that ends within the claim's own",
      "a dead owner has its key for one lease at most when the clock was set back by an hour",
    ],
    wrong: ({ store }) => ({
      async claim(key, claim) {
        const result = await store.claim(key, claim);
        return result.status === "in-flight" ? { ...result, fingerprint: claim.fingerprint } : result;
      },
    }),
  },
  {
    does: "tells a duplicate when the lease ends, not in how long",
    fails: [
      "a lease is live until its last millisecond and has expired at its end",
      "a key in flight is refused to others, with its owner's fingerprint and what is left of the lease",
      "a claim leaves the owner no more of its lease than the claim's own, and that really ends",
      "a claim leaves a lease alone that ends within the claim's own",
      "a dead owner has its key for one lease at most when the clock was set back by an hour",
    ],
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
    fails: [
      "a claim repeated with its token, after a lost reply, is acquired again with the same fence",
      "a claim repeated with its token begins the lease anew",
      "concurrent repetitions of one claim are all acquired, with one fence",
      "a claim leaves the owner no more of its lease than the claim's own, and that really ends",
      "a dead owner has its key for one lease at most when the clock was set back by an hour",
      "an expired run that lives again when the clock was set back lives for one lease at most",
      "the fence grows when the clock was set back, over a release, a takeover and a decision",
    ],
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
    fails: [
      "a claim repeated with its token, after a lost reply, is acquired again with the same fence",
      "concurrent repetitions of one claim are all acquired, with one fence",
    ],
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
    fails: ["a claim repeated with its token begins the lease anew"],
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
    fails: ["a claim of a done or held key says so to everybody, its owner included, and changes nothing"],
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
    fails: [
      "a claim of a done or held key says so to everybody, its owner included, and changes nothing",
      "hostile tokens, fingerprints and reasons are given back unchanged",
      "reopen takes a decision back: the key is held again, for its own reason, under a higher fence",
    ],
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
    fails: [
      "reading changes nothing, not even an expired run",
      "a lease is live until its last millisecond and has expired at its end",
      "a heartbeat of a stranger is lost in every state, and moves no lease",
      "pruning removes neither runs nor held keys, however old",
      "completeIn leaves the run when its transaction is rolled back",
    ],
    wrong: (platform) => ({
      read(key) {
        if (isExpired(platform, key)) platform.memory.hold(key, ownerOf(platform, key, ""), "lease-expired");
        return platform.store.read(key);
      },
    }),
  },
];
