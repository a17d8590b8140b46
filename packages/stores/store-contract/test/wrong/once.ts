import type { IdempotencyOwnership } from "@countersign/idempotency";
import type { Platform, Tx } from "../platform.ts";
import { type WrongStore, ownerOf, roundTrip, stateOf } from "./wrong-store.ts";

const right = ({ store }: Platform, tx: Tx, key: string, token: string): IdempotencyOwnership => {
  const answer = store.completeIn?.(tx, key, token);
  if (answer !== "ok" && answer !== "lost") throw new Error("the platform answers at once");
  return answer;
};

/** Wrong about a key that is ended already, and about transactions that are over. */
export const wrongOnce: readonly WrongStore[] = [
  {
    does: "says ok to a transaction that is repeated after its commit",
    fails: "completeIn is lost",
    wrong: (platform) => ({
      completeIn: (tx, key, token) =>
        stateOf(platform, key) === "done" && ownerOf(platform, key, "") === token
          ? "ok"
          : right(platform, tx, key, token),
    }),
  },
  {
    does: "says ok to a transaction of the owner while another one of its own is open",
    fails: "of two transactions",
    wrong: (platform) => ({
      completeIn(tx, key, token) {
        const isOther = platform.locks.has(key) && platform.locks.get(key) !== tx;
        return isOther && ownerOf(platform, key, "") === token ? "ok" : right(platform, tx, key, token);
      },
    }),
  },
  {
    does: "completes in a transaction for the old owner what an operator has resolved",
    wrong: (platform) => {
      const former = new Map<string, string>();
      return {
        async resolve(key, outcome, decision) {
          const owner = ownerOf(platform, key, "");
          const answer = await platform.store.resolve(key, outcome, decision);
          if (answer === "ok") former.set(key, owner);
          return answer;
        },
        completeIn: (tx, key, token) => (former.get(key) === token ? "ok" : right(platform, tx, key, token)),
      };
    },
  },
  {
    does: "does not look whether a transaction is open",
    fails: "completeIn throws where",
    wrong: (platform) => ({
      completeIn: (tx, key, token) =>
        platform.open.has(tx) ? right(platform, tx, key, token) : platform.store.complete(key, token),
    }),
  },
  {
    does: "calls it lost where no transaction is open",
    fails: "completeIn throws where",
    wrong: (platform) => ({
      completeIn: (tx, key, token) => (platform.open.has(tx) ? right(platform, tx, key, token) : "lost"),
    }),
  },
  {
    does: "throws where no transaction is open, and completes",
    fails: "completeIn throws where",
    wrong: (platform) => ({
      completeIn(tx, key, token) {
        if (!platform.open.has(tx)) platform.memory.complete(key, token);
        return right(platform, tx, key, token);
      },
    }),
  },
  {
    does: "takes what is no transaction for a failure of its own",
    fails: "completeIn throws a",
    wrong: (platform) => ({
      completeIn(tx, key, token) {
        if (!((tx as unknown) instanceof Map)) throw new Error("the engine does not answer");
        return right(platform, tx, key, token);
      },
    }),
  },
  {
    does: "answers a transaction after close",
    fails: "completeIn after close",
    wrong: (platform) => ({
      completeIn(tx, key, token) {
        try {
          platform.memory.read(key);
        } catch {
          return "lost";
        }
        return right(platform, tx, key, token);
      },
    }),
  },
  {
    does: "calls a key done that it has waited for, also after a rollback",
    fails: "a step that",
    ignores: "locks",
    wrong: (platform) => ({
      async claim(key, claim) {
        if (!platform.locks.has(key)) return platform.store.claim(key, claim);
        do await roundTrip();
        while (platform.locks.has(key));
        return { status: "done", fingerprint: claim.fingerprint };
      },
    }),
  },
];
