import type { IdempotencyOwnership } from "@countersign/idempotency";
import type { Platform, Tx } from "../platform.ts";
import { type WrongStore, ownerOf } from "./wrong-store.ts";

type CompleteIn = (
  tx: Tx,
  key: string,
  token: string,
) => IdempotencyOwnership | Promise<IdempotencyOwnership>;

const right = ({ store }: Platform): CompleteIn => {
  if (store.completeIn === undefined) throw new Error("the platform has transactions");
  return (tx, key, token) => store.completeIn?.(tx, key, token) ?? "lost";
};

export const wrongTransactions: readonly WrongStore[] = [
  {
    does: "completes at once, whatever becomes of the transaction",
    fails: "of two transactions",
    wrong: ({ store }) => ({ completeIn: (_tx, key, token) => store.complete(key, token) }),
  },
  {
    does: "says ok in a transaction and writes nothing",
    fails: "of two transactions",
    wrong: ({ memory }) => ({
      completeIn: (_tx, key, token) => (memory.read(key)?.token === token ? "ok" : "lost"),
    }),
  },
  {
    does: "says ok to a completion that is repeated in its transaction",
    fails: "completeIn is lost",
    wrong: (platform) => ({
      completeIn: (tx, key, token) => (tx.get(key) === token ? "ok" : right(platform)(tx, key, token)),
    }),
  },
  {
    does: "refuses to complete a held key in a transaction",
    wrong: (platform) => ({
      completeIn: (tx, key, token) =>
        platform.memory.read(key)?.state === "held" ? "lost" : right(platform)(tx, key, token),
    }),
  },
  {
    does: "completes a run for anybody in a transaction when its lease began anew",
    wrong: (platform) => {
      const former = new Map<string, string>();
      return {
        claim(key, claim) {
          former.set(key, ownerOf(platform, key, claim.token));
          return platform.store.claim(key, claim);
        },
        completeIn: (tx, key, token) =>
          right(platform)(tx, key, former.get(key) === token ? ownerOf(platform, key, token) : token),
      };
    },
  },
  {
    does: "keeps a key locked after a rollback",
    fails: "completeIn throws where",
    wrong: (platform) => {
      const locked = new Set<string>();
      return {
        completeIn(tx, key, token) {
          locked.add(key);
          return right(platform)(tx, key, token);
        },
        claim(key, claim) {
          if (locked.has(key) && platform.memory.read(key)?.state === "run") throw new Error("locked");
          return platform.store.claim(key, claim);
        },
      };
    },
  },
  {
    does: "shows done before the commit",
    fails: "completeIn is seen",
    wrong: ({ store, locks }) => ({
      async read(key) {
        const record = await store.read(key);
        if (record === undefined || !locks.has(key)) return record;
        const { token, fence, fingerprint } = record;
        return { state: "done", token, fence, fingerprint };
      },
    }),
  },
  {
    does: "tells a duplicate that it is done before the commit",
    fails: "completeIn is seen",
    ignores: "locks",
    wrong: ({ store, locks }) => ({
      claim: (key, claim) =>
        locks.has(key) ? { status: "done", fingerprint: claim.fingerprint } : store.claim(key, claim),
    }),
  },
  ...(["claim", "release", "hold", "resolve"] as const).map((method): WrongStore => ({
    does: `lets ${method}() change a key that a transaction completes`,
    fails: "while a transaction",
    ignores: "locks",
    wrong: ({ memory }) => ({ [method]: memory[method].bind(memory) }),
  })),
];
