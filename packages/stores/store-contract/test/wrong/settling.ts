import { type WrongStore, decide, ownerOf, runOf, stateOf } from "./wrong-store.ts";

/** Wrong at the end of a run. */
export const wrongSettling: readonly WrongStore[] = [
  {
    does: "calls a repeated completion lost",
    fails: [
      "complete makes the owner's run done, and is ok again when its reply was lost",
      "a done key is remembered to the last millisecond of its retention, which begins when it is done",
      "completeIn makes the key done with the commit",
    ],
    wrong: (platform) => ({
      complete: (key, token) =>
        stateOf(platform, key) === "done" ? "lost" : platform.store.complete(key, token),
    }),
  },
  {
    does: "refuses to complete a held key",
    fails: ["complete by the owner ends a held key, whoever held it"],
    wrong: (platform) => ({
      complete: (key, token) =>
        stateOf(platform, key) === "held" ? "lost" : platform.store.complete(key, token),
    }),
  },
  {
    does: "lets anybody complete a held key",
    fails: [
      "complete by a stranger is lost in every state",
      "a reopening does not bring the old owner back, nor whatever token was read meanwhile",
    ],
    wrong: (platform) => ({
      complete: (key, token) =>
        platform.store.complete(
          key,
          stateOf(platform, key) === "held" ? ownerOf(platform, key, token) : token,
        ),
    }),
  },
  {
    does: "completes for anybody",
    fails: [
      "an expired run is either completed by its owner or taken over, never both",
      "complete by a stranger is lost in every state",
      "an owner whose key was taken over has lost it, whatever it tries",
      "resolve as released makes a held key absent, once, and its late owner has lost it",
      "a token is compared as it was given: what looks like it is a stranger's",
      "a token, a fingerprint or a reason of 10 kB is kept as it is or refused, never cut",
      "resolve takes the key from its owner, who has lost it, whatever it tries when it wakes up",
      "a reopening does not bring the old owner back, nor whatever token was read meanwhile",
    ],
    wrong: (platform) => ({
      complete: (key, token) => platform.store.complete(key, ownerOf(platform, key, token)),
    }),
  },
  {
    does: "completes a released key for who released it",
    fails: [
      "of two steps at once on an expired run one comes first, and the other one sees it",
      "complete is lost to the owner of a key that was released",
    ],
    wrong: ({ store, memory }) => {
      const released = new Map<string, string>();
      return {
        async release(key, token) {
          const answer = await store.release(key, token);
          if (answer === "ok") released.set(key, token);
          return answer;
        },
        complete(key, token) {
          if (memory.read(key) === undefined && released.get(key) === token) {
            memory.claim(key, { token, fingerprint: "", leaseMs: 1, recovery: "hold" });
          }
          return store.complete(key, token);
        },
      };
    },
  },
  {
    does: "says ok to a release and keeps the run",
    fails: [
      "an owner whose lease has expired and whose key nobody took settles it as before",
      "a heartbeat is lost to the owner itself once the key is no run any more",
      "complete is lost to the owner of a key that was released",
      "release makes the owner's run absent, once",
      "hold of a key that is no run is lost to the owner itself",
      "the fence grows over a release, also for the same token",
      "after the engine is back it has everything that was answered before",
      "list gives the keys in a state, with the records that are read, and no others",
      "a decision about an earlier attempt ends no later one, whether it runs, has expired or is held",
      "the fence grows when the clock was set back, over a release, a takeover and a decision",
      "the fence grows over a restart of the engine, whatever that has lost",
      "every step finds a hostile key, and ends it",
      "a decision is kept as long as a done key is remembered, pruned or not, and no longer",
    ],
    wrong: (platform) => ({
      release: (key, token) => (runOf(platform, key)?.token === token ? "ok" : "lost"),
    }),
  },
  {
    does: "says ok to a repeated release",
    fails: [
      "of two steps at once on an expired run one comes first, and the other one sees it",
      "release makes the owner's run absent, once",
    ],
    wrong: (platform) => {
      const released = new Map<string, string>();
      return {
        async release(key, token) {
          if (released.get(key) === token && stateOf(platform, key) === undefined) return "ok";
          const answer = await platform.store.release(key, token);
          if (answer === "ok") released.set(key, token);
          return answer;
        },
      };
    },
  },
  {
    does: "releases for anybody",
    fails: [
      "release by a stranger is lost in every state",
      "an owner whose key was taken over has lost it, whatever it tries",
      "a token is compared as it was given: what looks like it is a stranger's",
      "resolve takes the key from its owner, who has lost it, whatever it tries when it wakes up",
      "a reopening does not bring the old owner back, nor whatever token was read meanwhile",
    ],
    wrong: (platform) => ({
      release: (key, token) => platform.store.release(key, ownerOf(platform, key, token)),
    }),
  },
  {
    does: "releases a held key for its owner",
    fails: ["release of a done or held key is lost to the owner itself"],
    wrong: (platform) => ({
      release(key, token) {
        const isOwn = stateOf(platform, key) === "held" && ownerOf(platform, key, "") === token;
        if (!isOwn) return platform.store.release(key, token);
        decide(platform, key, "released");
        return "ok";
      },
    }),
  },
  {
    does: "lets go of a held key with the lease of its run",
    fails: [
      "under recovery hold an expired run becomes held for its old owner, and stays held",
      "hold keeps the owner's run from everybody, with the owner's reason, until it is resolved",
    ],
    wrong: ({ store, memory, clock }) => {
      const ends = new Map<string, number>();
      return {
        claim(key, claim) {
          const isHeld = memory.read(key)?.state === "held";
          if (isHeld && clock.nowMs >= (ends.get(key) ?? Infinity)) decide({ memory }, key, "released");
          const result = store.claim(key, claim);
          if (memory.read(key)?.token === claim.token) ends.set(key, clock.nowMs + claim.leaseMs);
          return result;
        },
      };
    },
  },
  {
    does: "holds for anybody",
    fails: [
      "hold by a stranger is lost in every state",
      "an owner whose key was taken over has lost it, whatever it tries",
      "a token is compared as it was given: what looks like it is a stranger's",
      "resolve takes the key from its owner, who has lost it, whatever it tries when it wakes up",
      "a reopening does not bring the old owner back, nor whatever token was read meanwhile",
    ],
    wrong: (platform) => ({
      hold: (key, token, reason) => platform.store.hold(key, ownerOf(platform, key, token), reason),
    }),
  },
  {
    does: "replaces the reason of a held key at a repeated hold",
    fails: ["hold of a key that is no run is lost to the owner itself"],
    wrong: (platform) => {
      const reasons = new Map<string, string>();
      return {
        async hold(key, token, reason) {
          const isOwn = stateOf(platform, key) === "held" && ownerOf(platform, key, "") === token;
          if (!isOwn) return platform.store.hold(key, token, reason);
          reasons.set(key, reason);
          return "lost";
        },
        async read(key) {
          const record = await platform.store.read(key);
          return record?.state === "held" ? { ...record, reason: reasons.get(key) ?? record.reason } : record;
        },
      };
    },
  },
  {
    does: "completes for whoever has ever owned the key",
    fails: [
      "an expired run is either completed by its owner or taken over, never both",
      "an owner whose key was taken over has lost it, whatever it tries",
      "resolve as released makes a held key absent, once, and its late owner has lost it",
      "resolve takes the key from its owner, who has lost it, whatever it tries when it wakes up",
      "a reopening does not bring the old owner back, nor whatever token was read meanwhile",
    ],
    wrong: (platform) => {
      const owners = new Map<string, Set<string>>();
      return {
        async claim(key, claim) {
          const result = await platform.store.claim(key, claim);
          const known = owners.get(key) ?? new Set();
          if (result.status === "acquired") owners.set(key, known.add(claim.token));
          return result;
        },
        complete(key, token) {
          const isKnown = owners.get(key)?.has(token) === true;
          return platform.store.complete(key, isKnown ? ownerOf(platform, key, token) : token);
        },
      };
    },
  },
  {
    does: "shows a done key to a heartbeat of its owner as a run again",
    fails: ["a heartbeat is lost to the owner itself once the key is no run any more", "no step ends done"],
    wrong: (platform) => {
      const revived = new Set<string>();
      return {
        heartbeat(key, token, leaseMs) {
          if (stateOf(platform, key) === "done" && ownerOf(platform, key, "") === token) revived.add(key);
          return platform.store.heartbeat(key, token, leaseMs);
        },
        async read(key) {
          const record = await platform.store.read(key);
          return record?.state === "done" && revived.has(key)
            ? { ...record, state: "run", remainingMs: 1 }
            : record;
        },
      };
    },
  },
];
