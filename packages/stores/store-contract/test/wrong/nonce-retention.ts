import { type WrongNonceStore, changed, foundIn } from "./wrong-nonce-store.ts";
import { clockAheadMs, roundTrip } from "./wrong-store.ts";

export const wrongNonceRetention: readonly WrongNonceStore[] = [
  {
    does: "forgets in the last millisecond",
    fails: "a nonce is seen in the last second",
    ...changed(({ retainMs }) => ({ retainMs: retainMs - 1 })),
  },
  {
    does: "remembers a millisecond too long",
    fails: "a nonce is fresh again one millisecond",
    ...changed(({ retainMs }) => ({ retainMs: retainMs + 1 })),
  },
  {
    does: "prunes in the last millisecond",
    fails: "a nonce is seen in the last second",
    wrong: ({ store, kept, now }) => ({
      prune() {
        for (const [name, { untilMs }] of kept) if (untilMs === now()) kept.delete(name);
        return store.prune();
      },
    }),
  },
  {
    does: "gives a nonce that has ended to everybody",
    fails: "of many concurrent claims of a nonce exactly",
    wrong: (platform) => ({
      async claim(claim) {
        const found = platform.kept.get(platform.nameOf(claim));
        const hasEnded = found !== undefined && found.untilMs < platform.now();
        await roundTrip();
        const answer = await platform.store.claim(claim);
        return hasEnded ? "fresh" : answer;
      },
    }),
  },
  {
    does: "lets the old user have a nonce that has ended and was taken",
    fails: "a nonce is fresh again one millisecond",
    wrong: (platform) => {
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
  {
    does: "shortens the retention at a repetition",
    fails: "a repeated claim never shortens",
    wrong: (platform) => ({
      async claim(claim) {
        const answer = await platform.store.claim(claim);
        const found = foundIn(platform, claim);
        if (answer === "fresh" && found !== undefined) found.untilMs = platform.now() + claim.retainMs;
        return answer;
      },
    }),
  },
  {
    does: "lengthens the retention at a replay",
    fails: "a replay does not move",
    wrong: (platform) => ({
      async claim(claim) {
        const answer = await platform.store.claim(claim);
        const found = foundIn(platform, claim);
        if (answer === "seen" && found !== undefined) {
          found.untilMs = Math.max(found.untilMs, platform.now() + claim.retainMs);
        }
        return answer;
      },
    }),
  },
  {
    does: "prunes everything",
    fails: "a nonce is seen in the last second",
    wrong: ({ store, kept }) => ({
      async prune() {
        const count = kept.size;
        await store.prune();
        kept.clear();
        return count;
      },
    }),
  },
  {
    does: "lengthens retentions by what the process is ahead",
    fails: "retentions are measured",
    ...changed(({ retainMs }) => ({ retainMs: retainMs + Math.max(0, clockAheadMs()) })),
  },
  {
    does: "shortens retentions by what the process is behind",
    fails: "retentions are measured",
    ...changed(({ retainMs }) => ({ retainMs: retainMs + Math.min(0, clockAheadMs()) })),
  },
  {
    does: "counts at each pruning what it has pruned before",
    fails: "pruning removes the nonces",
    wrong: ({ store }) => {
      let count = 0;
      return {
        async prune() {
          count += await store.prune();
          return count;
        },
      };
    },
  },
  {
    does: "measures retentions by the wall clock of the process",
    fails: "retentions are measured",
    platform: { clockShiftMs: clockAheadMs },
  },
];
