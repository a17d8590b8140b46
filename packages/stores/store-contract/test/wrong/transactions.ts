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

/** Wrong with transactions. */
export const wrongTransactions: readonly WrongStore[] = [
  {
    does: "completes at once, whatever becomes of the transaction",
    fails: [
      "completeIn leaves the run when its transaction is rolled back",
      "completeIn is seen by nobody else before the commit",
      "while a transaction that completes a key is open, no other step takes or settles the key",
      "a step that waited for a transaction which is rolled back finds the run as it was",
      "completeIn is lost on a key that its own owner has completed, in the same transaction and later",
      "of two transactions of one owner at once only one completes the key",
      "completeIn throws where no transaction is open any more, and changes nothing",
      "completeIn throws a TypeError at what is no transaction at all, and changes nothing",
    ],
    wrong: ({ store }) => ({ completeIn: (_tx, key, token) => store.complete(key, token) }),
  },
  {
    does: "says ok in a transaction and writes nothing",
    fails: [
      "completeIn makes the key done with the commit",
      "completeIn by the owner ends a held key",
      "completeIn is seen by nobody else before the commit",
      "while a transaction that completes a key is open, no other step takes or settles the key",
      "completeIn finds hostile keys, and compares hostile tokens as they were given",
      "a step that waited for a transaction which is rolled back finds the run as it was",
      "completeIn is lost on a key that its own owner has completed, in the same transaction and later",
      "of two transactions of one owner at once only one completes the key",
      "completeIn throws where no transaction is open any more, and changes nothing",
      "completeIn throws a TypeError at what is no transaction at all, and changes nothing",
    ],
    wrong: ({ memory }) => ({
      completeIn: (_tx, key, token) => (memory.read(key)?.token === token ? "ok" : "lost"),
    }),
  },
  {
    does: "says ok to a completion that is repeated in its transaction",
    fails: [
      "completeIn is lost on a key that its own owner has completed, in the same transaction and later",
    ],
    wrong: (platform) => ({
      completeIn: (tx, key, token) => (tx.get(key) === token ? "ok" : right(platform)(tx, key, token)),
    }),
  },
  {
    does: "refuses to complete a held key in a transaction",
    fails: ["completeIn by the owner ends a held key"],
    wrong: (platform) => ({
      completeIn: (tx, key, token) =>
        platform.memory.read(key)?.state === "held" ? "lost" : right(platform)(tx, key, token),
    }),
  },
  {
    does: "completes for anybody in a transaction",
    fails: [
      "completeIn by a stranger is lost in every state, and commits nothing",
      "completeIn is lost to an owner whose key was taken over, so that its payment is rolled back",
      "completeIn finds hostile keys, and compares hostile tokens as they were given",
      "completeIn is lost to the old owner of a reopened key, so that its payment is rolled back",
    ],
    wrong: (platform) => ({
      completeIn: (tx, key, token) => right(platform)(tx, key, ownerOf(platform, key, token)),
    }),
  },
  {
    does: "completes a run for anybody in a transaction when its lease began anew",
    fails: [
      "completeIn is lost to an owner whose key was taken over, so that its payment is rolled back",
      "completeIn is lost to the old owner of a reopened key, so that its payment is rolled back",
    ],
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
    fails: [
      "completeIn leaves the run when its transaction is rolled back",
      "a step that waited for a transaction which is rolled back finds the run as it was",
      "completeIn throws where no transaction is open any more, and changes nothing",
    ],
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
    fails: ["completeIn is seen by nobody else before the commit"],
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
    fails: [
      "completeIn is seen by nobody else before the commit",
      "while a transaction that completes a key is open, no other step takes or settles the key",
      "a step that waited for a transaction which is rolled back finds the run as it was",
    ],
    ignores: "locks",
    wrong: ({ store, locks }) => ({
      claim: (key, claim) =>
        locks.has(key) ? { status: "done", fingerprint: claim.fingerprint } : store.claim(key, claim),
    }),
  },
  {
    does: "claims a key that a transaction completes",
    fails: [
      "while a transaction that completes a key is open, no other step takes or settles the key",
      "a step that waited for a transaction which is rolled back finds the run as it was",
    ],
    ignores: "locks",
    wrong: ({ memory }) => ({ claim: (key, claim) => memory.claim(key, claim) }),
  },
  {
    does: "releases a key that a transaction completes",
    fails: [
      "while a transaction that completes a key is open, no other step takes or settles the key",
      "a step that waited for a transaction which is rolled back finds the run as it was",
    ],
    ignores: "locks",
    wrong: ({ memory }) => ({ release: (key, token) => memory.release(key, token) }),
  },
  {
    does: "holds a key that a transaction completes",
    fails: [
      "while a transaction that completes a key is open, no other step takes or settles the key",
      "a step that waited for a transaction which is rolled back finds the run as it was",
    ],
    ignores: "locks",
    wrong: ({ memory }) => ({ hold: (key, token, reason) => memory.hold(key, token, reason) }),
  },
  {
    does: "resolves a key that a transaction completes",
    fails: [
      "while a transaction that completes a key is open, no other step takes or settles the key",
      "a step that waited for a transaction which is rolled back finds the run as it was",
    ],
    ignores: "locks",
    wrong: ({ memory }) => ({ resolve: (key, outcome, decision) => memory.resolve(key, outcome, decision) }),
  },
];
