import { type WrongStores, each, instead, ownerOf, reference, roundTrip, stateOf } from "./wrong-store.ts";

/** Wrong about a transaction, about one that is over, and about a key that is ended already. */
export const wrongTransactions: WrongStores = {
  "of two transactions": {
    "completes at once, whatever becomes of the transaction": instead(
      "completeIn",
      ({ store }, _tx, key, token) => store.complete(key, token),
    ),
    "says ok in a transaction and writes nothing": instead("completeIn", ({ memory }, _tx, key, token) =>
      memory.read(key)?.token === token ? "ok" : "lost",
    ),
    "says ok to a transaction of the owner while another one of its own is open": instead(
      "completeIn",
      (platform, tx, key, token) => {
        const isOther = platform.locks.has(key) && platform.locks.get(key) !== tx;
        return isOther && ownerOf(platform, key, "") === token
          ? "ok"
          : platform.store.completeIn(tx, key, token);
      },
    ),
  },
  [reference]: {
    "says ok to a completion that is repeated in its transaction": instead(
      "completeIn",
      (platform, tx, key, token) =>
        tx.get(key) === token ? "ok" : platform.store.completeIn(tx, key, token),
    ),
    "says ok to a transaction that is repeated after its commit": instead(
      "completeIn",
      (platform, tx, key, token) =>
        stateOf(platform, key) === "done" && ownerOf(platform, key, "") === token
          ? "ok"
          : platform.store.completeIn(tx, key, token),
    ),
    "refuses to complete a held key in a transaction": instead("completeIn", (platform, tx, key, token) =>
      platform.memory.read(key)?.state === "held" ? "lost" : platform.store.completeIn(tx, key, token),
    ),
    "completes a run for anybody in a transaction when its lease began anew": (platform) => {
      const former = new Map<string, string>();
      return {
        claim(key, claim) {
          former.set(key, ownerOf(platform, key, claim.token));
          return platform.store.claim(key, claim);
        },
        completeIn: (tx, key, token) =>
          platform.store.completeIn(
            tx,
            key,
            former.get(key) === token ? ownerOf(platform, key, token) : token,
          ),
      };
    },
    "completes in a transaction for the old owner what an operator has resolved": (platform) => {
      const former = new Map<string, string>();
      return {
        async resolve(key, outcome, decision) {
          const owner = ownerOf(platform, key, "");
          const answer = await platform.store.resolve(key, outcome, decision);
          if (answer === "ok") former.set(key, owner);
          return answer;
        },
        completeIn: (tx, key, token) =>
          former.get(key) === token ? "ok" : platform.store.completeIn(tx, key, token),
      };
    },
  },
  "completeIn throws where": {
    "keeps a key locked after a rollback": (platform) => {
      const locked = new Set<string>();
      return {
        completeIn(tx, key, token) {
          locked.add(key);
          return platform.store.completeIn(tx, key, token);
        },
        claim(key, claim) {
          if (locked.has(key) && platform.memory.read(key)?.state === "running") throw new Error("locked");
          return platform.store.claim(key, claim);
        },
      };
    },
    "does not look whether a transaction is open": instead("completeIn", (platform, tx, key, token) =>
      platform.open.has(tx) ? platform.store.completeIn(tx, key, token) : platform.store.complete(key, token),
    ),
    "calls it lost where no transaction is open": instead("completeIn", (platform, tx, key, token) =>
      platform.open.has(tx) ? platform.store.completeIn(tx, key, token) : "lost",
    ),
    "throws where no transaction is open, and completes": instead(
      "completeIn",
      (platform, tx, key, token) => {
        if (!platform.open.has(tx)) platform.memory.complete(key, token);
        return platform.store.completeIn(tx, key, token);
      },
    ),
  },
  "completeIn is seen": {
    "shows done before the commit": instead("read", async ({ store, locks }, key) => {
      const record = await store.read(key);
      if (record === undefined || !locks.has(key)) return record;
      const { token, fence, fingerprint } = record;
      return { state: "done", token, fence, fingerprint };
    }),
    "tells a duplicate that it is done before the commit": {
      ignores: "locks",
      wrong: instead("claim", ({ store, locks }, key, claim) =>
        locks.has(key) ? { status: "done", fingerprint: claim.fingerprint } : store.claim(key, claim),
      ),
    },
  },
  "while a transaction": each(["claim", "release", "hold", "resolve"], (method) => [
    `lets ${method}() change a key that a transaction completes`,
    { ignores: "locks", wrong: ({ memory }) => ({ [method]: memory[method].bind(memory) }) },
  ]),
  "completeIn throws a": {
    "takes what is no transaction for a failure of its own": instead(
      "completeIn",
      (platform, tx, key, token) => {
        if (!((tx as unknown) instanceof Map)) throw new Error("the engine does not answer");
        return platform.store.completeIn(tx, key, token);
      },
    ),
  },
  "completeIn after close": {
    "answers a transaction after close": instead("completeIn", (platform, tx, key, token) => {
      try {
        platform.memory.read(key);
      } catch {
        return "lost";
      }
      return platform.store.completeIn(tx, key, token);
    }),
  },
  "a step that": {
    "calls a key done that it has waited for, also after a rollback": {
      ignores: "locks",
      wrong: instead("claim", async (platform, key, claim) => {
        if (!platform.locks.has(key)) return platform.store.claim(key, claim);
        do await roundTrip();
        while (platform.locks.has(key));
        return { status: "done", fingerprint: claim.fingerprint };
      }),
    },
  },
};
