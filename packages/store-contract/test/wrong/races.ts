import { type WrongStore, isExpired, ownerOf, roundTrip, runOf } from "./wrong-store.ts";

const absent = undefined;

/** Wrong only when others come in between. */
export const wrongRaces: readonly WrongStore[] = [
  {
    does: "looks first and takes an absent key later",
    fails: [
      "of many concurrent claims of an absent key exactly one is acquired",
      "of many concurrent claims through several handles exactly one is acquired",
    ],
    wrong: (platform) => ({
      async claim(key, claim) {
        const wasAbsent = platform.memory.read(key) === absent;
        await roundTrip();
        const now = runOf(platform, key);
        if (wasAbsent && now !== undefined && now.token !== claim.token) {
          platform.memory.release(key, now.token);
        }
        return platform.store.claim(key, claim);
      },
    }),
  },
  {
    does: "has a lock for each handle only, around looking and taking an absent key",
    fails: ["of many concurrent claims through several handles exactly one is acquired"],
    wrong: (platform) => {
      let last: Promise<unknown> = Promise.resolve();
      return {
        async claim(key, claim) {
          const wasAbsent = platform.memory.read(key) === absent;
          const before = last;
          const mine = before.then(async () => {
            await roundTrip();
            const now = runOf(platform, key);
            // Of another handle: the tokens of a race begin with the handle's number.
            const isForeign = now !== undefined && now.token.split("-")[0] !== claim.token.split("-")[0];
            if (wasAbsent && isForeign) platform.memory.release(key, now.token);
            return platform.store.claim(key, claim);
          });
          last = mine.catch(() => {});
          return mine;
        },
      };
    },
  },
  {
    does: "looks first and takes an expired run over later",
    fails: [
      "of many concurrent claims of an expired run exactly one takes it over",
      "of many concurrent claims of an expired run through several handles exactly one takes it over",
    ],
    wrong: (platform) => ({
      async claim(key, claim) {
        const wasExpired = isExpired(platform, key) && claim.recovery === "rerun";
        await roundTrip();
        const now = runOf(platform, key);
        if (wasExpired && now !== undefined && now.token !== claim.token) {
          platform.memory.release(key, now.token);
        }
        return platform.store.claim(key, claim);
      },
    }),
  },
  {
    does: "has a lock for each handle only, around looking and taking an expired run over",
    fails: ["of many concurrent claims of an expired run through several handles exactly one takes it over"],
    wrong: (platform) => ({
      async claim(key, claim) {
        const wasExpired = isExpired(platform, key) && claim.recovery === "rerun";
        await roundTrip();
        const now = runOf(platform, key);
        const isForeign = now !== undefined && now.token.split("-")[0] !== claim.token.split("-")[0];
        if (wasExpired && isForeign && now.token.includes("-") && claim.token.includes("-")) {
          platform.memory.release(key, now.token);
        }
        return platform.store.claim(key, claim);
      },
    }),
  },
  {
    does: "takes an absent key twice when its owner's claim is repeated at once",
    fails: ["concurrent repetitions of one claim are all acquired, with one fence"],
    wrong: (platform) => ({
      async claim(key, claim) {
        const wasAbsent = platform.memory.read(key) === absent;
        await roundTrip();
        if (wasAbsent) platform.memory.release(key, claim.token);
        return platform.store.claim(key, claim);
      },
    }),
  },
  {
    does: "looks whose run it is first and completes it later",
    fails: ["an expired run is either completed by its owner or taken over, never both"],
    wrong: (platform) => ({
      async complete(key, token) {
        const wasOwn = runOf(platform, key)?.token === token;
        await roundTrip();
        return platform.store.complete(key, wasOwn ? ownerOf(platform, key, token) : token);
      },
    }),
  },
];
