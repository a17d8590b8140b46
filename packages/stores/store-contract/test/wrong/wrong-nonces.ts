import { type WrongNonceStores, changed, foundIn, instead } from "./wrong-nonce-store.ts";
import { clockAheadMs, roundTrip } from "./wrong-store.ts";

const wasStopped = new WeakSet();

export const wrongNonces: WrongNonceStores = {
  "a nonce is fresh to the request": {
    "forgets a nonce that was seen": instead("claim", async (platform, claim) => {
      const answer = await platform.store.claim(claim);
      if (answer === "seen") platform.kept.delete(platform.nameOf(claim));
      return answer;
    }),
    "takes its own repetition for a replay": instead("claim", async (platform, claim) => {
      const wasAbsent = foundIn(platform, claim) === undefined;
      const answer = await platform.store.claim(claim);
      return wasAbsent ? answer : "seen";
    }),
    "gives the nonce to its replay": instead("claim", async (platform, claim) => {
      const answer = await platform.store.claim(claim);
      const found = foundIn(platform, claim);
      if (answer === "seen" && found !== undefined) found.token = claim.token;
      return answer;
    }),
  },
  "of many concurrent claims of a nonce exactly": {
    "looks first and remembers later": instead("claim", async (platform, claim) => {
      const wasAbsent = foundIn(platform, claim) === undefined;
      await roundTrip();
      const answer = await platform.store.claim(claim);
      return wasAbsent ? "fresh" : answer;
    }),
    "gives a nonce that has ended to everybody": instead("claim", async (platform, claim) => {
      const found = platform.kept.get(platform.nameOf(claim));
      const hasEnded = found !== undefined && found.untilMs < platform.now();
      await roundTrip();
      const answer = await platform.store.claim(claim);
      return hasEnded ? "fresh" : answer;
    }),
  },
  "of many concurrent claims of a nonce through": {
    "remembers for each handle on its own, for a moment": (platform) => {
      const own = new Set<string>();
      return {
        async claim(claim) {
          const name = platform.nameOf(claim);
          const isMine = own.has(name);
          const wasAbsent = foundIn(platform, claim) === undefined;
          own.add(name);
          await roundTrip();
          const answer = await platform.store.claim(claim);
          return wasAbsent && !isMine ? "fresh" : answer;
        },
      };
    },
  },
  "concurrent repetitions": {
    "takes a repetition for a replay while the first claim is under way": (platform) => {
      const underWay = new Set<string>();
      return {
        async claim(claim) {
          const name = platform.nameOf(claim);
          const isFirst = !underWay.has(name);
          underWay.add(name);
          await roundTrip();
          if (isFirst) underWay.delete(name);
          const answer = await platform.store.claim(claim);
          return isFirst ? answer : "seen";
        },
      };
    },
  },
  "a nonce is seen in the last second": {
    "forgets in the last millisecond": changed(({ retainMs }) => ({ retainMs: retainMs - 1 })),
    "prunes in the last millisecond": instead("prune", ({ store, kept, now }) => {
      for (const [name, { untilMs }] of kept) if (untilMs === now()) kept.delete(name);
      return store.prune();
    }),
    "prunes everything": instead("prune", async ({ store, kept }) => {
      const count = kept.size;
      await store.prune();
      kept.clear();
      return count;
    }),
  },
  "a nonce is fresh again one millisecond": {
    "remembers a millisecond too long": changed(({ retainMs }) => ({ retainMs: retainMs + 1 })),
    "lets the old user have a nonce that has ended and was taken": (platform) => {
      const users = new Map<string, Set<string>>();
      return {
        async claim(claim) {
          const name = platform.nameOf(claim);
          const answer = await platform.store.claim(claim);
          const known = users.get(name) ?? new Set();
          if (answer === "fresh") users.set(name, known.add(claim.token));
          return known.has(claim.token) ? "fresh" : answer;
        },
      };
    },
  },
  "a repeated claim never shortens": {
    "shortens the retention at a repetition": instead("claim", async (platform, claim) => {
      const answer = await platform.store.claim(claim);
      const found = foundIn(platform, claim);
      if (answer === "fresh" && found !== undefined) found.untilMs = platform.now() + claim.retainMs;
      return answer;
    }),
  },
  "a replay does not move": {
    "lengthens the retention at a replay": instead("claim", async (platform, claim) => {
      const answer = await platform.store.claim(claim);
      const found = foundIn(platform, claim);
      if (answer === "seen" && found !== undefined) {
        found.untilMs = Math.max(found.untilMs, platform.now() + claim.retainMs);
      }
      return answer;
    }),
  },
  "retentions are measured": {
    "lengthens retentions by what the process is ahead": changed(({ retainMs }) => ({
      retainMs: retainMs + Math.max(0, clockAheadMs()),
    })),
    "shortens retentions by what the process is behind": changed(({ retainMs }) => ({
      retainMs: retainMs + Math.min(0, clockAheadMs()),
    })),
    "measures retentions by the wall clock of the process": { platform: { clockShiftMs: clockAheadMs } },
  },
  "pruning removes the nonces": {
    "counts at each pruning what it has pruned before": ({ store }) => {
      let count = 0;
      return {
        async prune() {
          count += await store.prune();
          return count;
        },
      };
    },
  },
  "hostile scopes and nonces": {
    "joins scope and nonce by nothing": { platform: { nameOf: ({ scope, nonce }) => scope + nonce } },
    "joins scope and nonce by a colon": { platform: { nameOf: ({ scope, nonce }) => `${scope}:${nonce}` } },
    "compares scopes without case": changed(({ scope }) => ({ scope: scope.toLowerCase() })),
    "trims nonces": changed(({ nonce }) => ({ nonce: nonce.trim() })),
    "keeps 127 characters of a nonce": changed(({ nonce }) => ({ nonce: nonce.slice(0, 127) })),
  },
  "the token of a nonce": {
    "compares tokens without case": changed(({ token }) => ({ token: token.toLowerCase() })),
  },
  "a scope or a token": {
    "keeps 512 characters of a scope": changed(({ scope }) => ({ scope: scope.slice(0, 512) })),
    "keeps 512 characters of a token": changed(({ token }) => ({ token: token.slice(0, 512) })),
  },
  "every call after close": {
    "claims after close": ({ store, engine }) => {
      let isClosed = false;
      return {
        claim: (claim) => (isClosed && engine.isRunning ? "seen" : store.claim(claim)),
        close: () => void (isClosed = true),
      };
    },
  },
  "a full store": {
    "makes room by the oldest nonce when it is full": ({ store, kept, nameOf }) => {
      const evicted = new Set<string>();
      return {
        claim(claim) {
          if (evicted.has(nameOf(claim))) return "fresh";
          try {
            return store.claim(claim);
          } catch (error) {
            if (kept.size >= 300) evicted.add(kept.keys().next().value ?? "");
            throw error;
          }
        },
      };
    },
    "waves a nonce through when it is full": instead("claim", ({ store, kept }, claim) => {
      try {
        return store.claim(claim);
      } catch (error) {
        if (kept.size < 300) throw error;
        return "fresh";
      }
    }),
  },
  "every call while": {
    "waves a nonce through while the engine is stopped": instead("claim", ({ store, engine }, claim) =>
      engine.isRunning ? store.claim(claim) : "fresh",
    ),
    "waits for ever while the engine is stopped": instead("claim", ({ store, engine }, claim) =>
      engine.isRunning ? store.claim(claim) : new Promise(() => {}),
    ),
  },
  "after the engine is back the": {
    "does not find the engine again": {
      engine: ({ engine }) => ({
        stop() {
          engine.isRunning = false;
          wasStopped.add(engine);
        },
      }),
      wrong: instead("claim", ({ store, engine }, claim) => {
        if (wasStopped.has(engine)) throw new Error("not connected");
        return store.claim(claim);
      }),
    },
  },
  "after the engine is back it": {
    "forgets its nonces with the engine": {
      engine: ({ engine, kept }) => ({
        stop() {
          engine.isRunning = false;
          kept.clear();
        },
      }),
    },
  },
};
