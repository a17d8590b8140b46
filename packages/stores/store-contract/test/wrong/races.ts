import {
  type Change,
  type WrongStores,
  each,
  instead,
  isExpired,
  ownerOf,
  roundTrip,
  runOf,
  stateOf,
} from "./wrong-store.ts";

const absent = undefined;

export const wrongRaces: WrongStores = {
  "of many concurrent claims exactly": {
    "looks first and takes an absent key later": instead("claim", async (platform, key, claim) => {
      const wasAbsent = platform.memory.read(key) === absent;
      await roundTrip();
      const now = runOf(platform, key);
      if (wasAbsent && now !== undefined && now.token !== claim.token) {
        platform.memory.release(key, now.token);
      }
      return platform.store.claim(key, claim);
    }),
    "looks first and takes an expired run over later": instead("claim", async (platform, key, claim) => {
      const wasExpired = isExpired(platform, key) && claim.recovery === "rerun";
      await roundTrip();
      const now = runOf(platform, key);
      if (wasExpired && now !== undefined && now.token !== claim.token) {
        platform.memory.release(key, now.token);
      }
      return platform.store.claim(key, claim);
    }),
  },
  "of many concurrent claims through": {
    "has a lock for each handle only, around looking and taking an absent key": {
      isPerHandle: true,
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
    "has a lock for each handle only, around looking and taking an expired run over": {
      isPerHandle: true,
      wrong: instead("claim", async (platform, key, claim) => {
        const wasExpired = isExpired(platform, key) && claim.recovery === "rerun";
        await roundTrip();
        const now = runOf(platform, key);
        const isForeign = now !== undefined && now.token.split("-")[0] !== claim.token.split("-")[0];
        if (wasExpired && isForeign && now.token.includes("-") && claim.token.includes("-")) {
          platform.memory.release(key, now.token);
        }
        return platform.store.claim(key, claim);
      }),
    },
  },
  "of two steps at once on a key that was": {
    "takes an absent key twice when its owner's claim is repeated at once": instead(
      "claim",
      async (platform, key, claim) => {
        const wasAbsent = platform.memory.read(key) === absent;
        await roundTrip();
        if (wasAbsent) platform.memory.release(key, claim.token);
        return platform.store.claim(key, claim);
      },
    ),
  },
  "of two steps at once on an": {
    ...each(["complete", "heartbeat", "release"], lateStep),
    "looks whether a run has expired first and resolves it later": instead(
      "resolve",
      async (platform, key, outcome, { fence, ...given }) => {
        const found = runOf(platform, key);
        const wasExpired = isExpired(platform, key) && found?.fence === fence;
        await roundTrip();
        const now = runOf(platform, key);
        if (!wasExpired || now === undefined)
          return platform.store.resolve(key, outcome, { fence, ...given });
        platform.memory.heartbeat(key, now.token, 0);
        return platform.store.resolve(key, outcome, { ...given, fence: now.fence });
      },
    ),
  },
  "of two steps at once on a held": {
    "looks whether a key is held first and resolves it later": instead(
      "resolve",
      async (platform, key, outcome, decision) => {
        const wasHeld = stateOf(platform, key) === "held";
        const isIts = platform.memory.read(key)?.fence === decision.fence;
        await roundTrip();
        const now = await platform.store.resolve(key, outcome, decision);
        return wasHeld && isIts ? "ok" : now;
      },
    ),
  },
  "pruning leaves a": {
    "looks which keys have ended first and prunes them later": (platform) => {
      const doneKeys = new Set<string>();
      return {
        async complete(key, token) {
          const answer = await platform.store.complete(key, token);
          if (answer === "ok") doneKeys.add(key);
          return answer;
        },
        async prune() {
          const ended = [...doneKeys].filter((key) => stateOf(platform, key) === undefined);
          const count = await platform.store.prune();
          await roundTrip();
          for (const key of ended) platform.memory.release(key, ownerOf(platform, key, ""));
          return count;
        },
      };
    },
  },
  "of two steps at once through": each(["hold"], lateStep),
};

function lateStep(method: "complete" | "heartbeat" | "release" | "hold"): readonly [string, Change] {
  return [
    `looks whose run it is first and takes the step later: ${method}()`,
    (platform) => ({
      async [method](key: string, token: string, more: never) {
        const wasOwn = runOf(platform, key)?.token === token;
        await roundTrip();
        return platform.store[method](key, wasOwn ? ownerOf(platform, key, token) : token, more);
      },
    }),
  ];
}
