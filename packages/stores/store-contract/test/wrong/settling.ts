import { type WrongStore, decide, ownerOf, runOf, stateOf } from "./wrong-store.ts";

export const wrongSettling: readonly WrongStore[] = [
  ...(["done", "held"] as const).map((state): WrongStore => ({
    does: `refuses to complete a key that is ${state}`,
    wrong: (platform) => ({
      complete: (key, token) =>
        stateOf(platform, key) === state ? "lost" : platform.store.complete(key, token),
    }),
  })),
  {
    does: "lets anybody complete a held key",
    wrong: (platform) => ({
      complete: (key, token) =>
        platform.store.complete(
          key,
          stateOf(platform, key) === "held" ? ownerOf(platform, key, token) : token,
        ),
    }),
  },
  {
    does: "completes a released key for who released it",
    fails: "of two steps at once on an",
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
    fails: "the fence grows over",
    wrong: (platform) => ({
      release: (key, token) => (runOf(platform, key)?.token === token ? "ok" : "lost"),
    }),
  },
  {
    does: "says ok to a repeated release",
    fails: "of two steps at once on an",
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
    does: "releases a held key for its owner",
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
    does: "completes for whoever has ever owned the key",
    fails: "of two steps at once on a held",
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
];
