import { type WrongNonceStore, foundIn } from "./wrong-nonce-store.ts";
import { roundTrip } from "./wrong-store.ts";

/** Wrong at the use of a nonce. */
export const wrongNonceClaims: readonly WrongNonceStore[] = [
  {
    does: "forgets a nonce that was seen",
    fails: [
      "a nonce is fresh to its first claim and seen to every other",
      "a nonce is seen in the last second and in the last millisecond of its retention, pruned or not",
      "a replay does not move the end of the retention",
    ],
    wrong: (platform) => ({
      async claim(claim) {
        const answer = await platform.store.claim(claim);
        if (answer === "seen") platform.kept.delete(platform.nameOf(claim));
        return answer;
      },
    }),
  },
  {
    does: "takes its own repetition for a replay",
    fails: [
      "a claim repeated with its token, after a lost reply, is fresh again",
      "concurrent repetitions of one claim of a nonce are all fresh",
      "the token of a nonce is compared as it was given: what looks like it is a stranger's",
    ],
    wrong: (platform) => ({
      async claim(claim) {
        const wasAbsent = foundIn(platform, claim) === undefined;
        const answer = await platform.store.claim(claim);
        return wasAbsent ? answer : "seen";
      },
    }),
  },
  {
    does: "gives the nonce to its replay",
    fails: [
      "a claim repeated with its token, after a lost reply, is fresh again",
      "a nonce is seen in the last second and in the last millisecond of its retention, pruned or not",
      "a replay does not move the end of the retention",
      "the token of a nonce is compared as it was given: what looks like it is a stranger's",
    ],
    wrong: (platform) => ({
      async claim(claim) {
        const answer = await platform.store.claim(claim);
        const found = foundIn(platform, claim);
        if (answer === "seen" && found !== undefined) found.token = claim.token;
        return answer;
      },
    }),
  },
  {
    does: "looks first and remembers later",
    fails: [
      "of many concurrent claims of a nonce exactly one is fresh",
      "of many concurrent claims of a nonce through several handles exactly one is fresh",
      "a nonce whose retention has ended is fresh to one of many concurrent claims",
    ],
    wrong: (platform) => ({
      async claim(claim) {
        const wasAbsent = foundIn(platform, claim) === undefined;
        await roundTrip();
        const answer = await platform.store.claim(claim);
        return wasAbsent ? "fresh" : answer;
      },
    }),
  },
  {
    does: "remembers for each handle on its own, for a moment",
    fails: ["of many concurrent claims of a nonce through several handles exactly one is fresh"],
    wrong: (platform) => {
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
  {
    does: "takes a repetition for a replay while the first claim is under way",
    fails: ["concurrent repetitions of one claim of a nonce are all fresh"],
    wrong: (platform) => {
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
];
