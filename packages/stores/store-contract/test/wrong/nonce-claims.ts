import { type WrongNonceStore, foundIn } from "./wrong-nonce-store.ts";
import { roundTrip } from "./wrong-store.ts";

export const wrongNonceClaims: readonly WrongNonceStore[] = [
  {
    does: "forgets a nonce that was seen",
    fails: "a nonce is fresh to the request",
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
    fails: "a nonce is fresh to the request",
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
    fails: "a nonce is fresh to the request",
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
    fails: "of many concurrent claims of a nonce exactly",
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
    fails: "of many concurrent claims of a nonce through",
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
    fails: "concurrent repetitions",
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
