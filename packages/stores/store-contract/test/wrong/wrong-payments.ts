// Stores with transactions, each with one thing wrong. All but the waiting ones are SQLite in memory.
import type { TransactionBegun, TransactionStore } from "@countersign/idempotency";
import { transactionBroken } from "@countersign/idempotency/store";
import type { SqliteDatabase } from "@countersign/store-sqlite";
import type { WrongTransactions } from "../payment-harness.ts";
import type { FoundBy } from "./wrong-store.ts";

export type WrongPayments = FoundBy<WrongTransactions>;

type Begin = TransactionStore<SqliteDatabase>["begin"];
type Ending = TransactionStore<SqliteDatabase>["keep"];

const keys = "countersign_idempotency";

/** The store whose begin() is another one, made of the right one. */
function beginning(
  change: (begin: (...given: Parameters<Begin>) => TransactionBegun) => Begin,
): WrongTransactions {
  return ({ stores: { transactions } }) => ({
    begin: change((tx, claim) => transactions.begin(tx as never, claim) as TransactionBegun),
  });
}

/** The store that does this in the transaction too, before or after begin(). */
const beside = (when: "before" | "after", sql: string): WrongTransactions =>
  beginning((begin) => (tx, claim) => {
    if (when === "before") tx.exec(sql);
    const begun = begin(tx, claim);
    if (when === "after") tx.exec(sql);
    return begun;
  });

const ending =
  (change: (right: Ending) => Ending, name: "keep" | "undo"): WrongTransactions =>
  ({ stores: { transactions } }) => ({
    [name]: change((tx, given, more) => transactions[name](tx as never, given, more)),
  });

const freed = (given: Parameters<Ending>[1]) =>
  `UPDATE ${keys} SET state = 'free' WHERE key IN (${given.map(({ key }) => `'${key}'`).join(", ")})`;

/** Tells that the transaction is over, and leaves its keys as they are. */
const onlyTold: WrongTransactions = ({ database }) => ({
  keep() {
    if (database.inTransaction === false) throw transactionBroken("it is over");
  },
});

export const wrongPayments: WrongPayments = {
  "a key that was begun is done for everybody": {
    "begins a key without writing it": beside("after", `UPDATE ${keys} SET state = 'free'`),
    "keeps the key running": beside("after", `UPDATE ${keys} SET state = 'run'`),
    "forgets the nonce of what it paid": beside("after", "DELETE FROM countersign_nonces"),
    "begins a key anew for the token that has paid it": beginning((begin) => (tx, claim) => {
      tx.exec(`UPDATE ${keys} SET state = 'free' WHERE token = '${claim.keys[0]?.token}'`);
      return begin(tx, claim);
    }),
  },
  "a transaction that fails leaves no key": {
    "commits what a failed handler has written": ({ stores: { transactions } }) => ({
      async run(work) {
        const errors: unknown[] = [];
        const results: unknown[] = [];
        await transactions.run((tx) => {
          try {
            results.push(work(tx));
          } catch (error) {
            errors.push(error);
          }
        });
        if (errors.length > 0) throw errors[0];
        return results[0] as never;
      },
    }),
  },
  "a nonce that was used before is seen": {
    "claims no nonce": beginning(
      (begin) =>
        (tx, { nonce: _nonce, ...claim }) =>
          begin(tx, claim),
    ),
    "touches the keys of a seen nonce": ({ database, stores: { transactions, idempotency } }) => ({
      begin: (tx, claim) => transactions.begin(tx, claim),
      async run(work) {
        try {
          return await transactions.run(work);
        } catch (error) {
          if (!database.inTransaction) {
            const claim = { token: "x", fingerprint: "f", leaseMs: 1_000, recovery: "hold" } as const;
            await idempotency.claim("payout-7.acc-1.acc-2", claim);
          }
          throw error;
        }
      },
    }),
  },
  "a key that is done, running or held is answered": {
    "takes over a key that is done": beside(
      "before",
      `UPDATE ${keys} SET state = 'free' WHERE state = 'done'`,
    ),
    "takes over a run that is alive": beside(
      "before",
      `UPDATE ${keys} SET state = 'free' WHERE state = 'run'`,
    ),
    "forgets the nonce where no key was begun": beginning((begin) => (tx, claim) => {
      const begun = begin(tx, claim);
      if (begun.keys.every(({ status }) => status !== "begun")) tx.exec("DELETE FROM countersign_nonces");
      return begun;
    }),
  },
  "a run whose lease has ended is held": {
    "runs an expired run again that an operator has to look at": beginning(
      (begin) => (tx, claim) => begin(tx, { ...claim, recovery: "rerun" }),
    ),
    "answers held for an expired run, and writes nothing": beside(
      "after",
      `UPDATE ${keys} SET state = 'run' WHERE state = 'held'`,
    ),
  },
  "a run whose lease has ended is taken over": {
    "holds each expired run": beginning((begin) => (tx, claim) => begin(tx, { ...claim, recovery: "hold" })),
    "leaves the old owner its token": beside("after", `UPDATE ${keys} SET state = 'held', token = 'owner'`),
  },
  "a key that was released begins": {
    "begins its fences anew": beside("after", `UPDATE ${keys} SET fence = 1`),
  },
  "a key is done for the retention": {
    "remembers done keys for ever": beside("after", `UPDATE ${keys} SET until_ms = 9000000000000`),
    "remembers done keys for a minute": beside("after", `UPDATE ${keys} SET until_ms = 1800000060000`),
  },
  "an operator's decision stays": {
    "forgets what an operator has decided": beside("after", `UPDATE ${keys} SET decision = NULL`),
  },
  "of several keys each is answered": {
    "answers in an order of its own": beginning((begin) => (tx, claim) => {
      const sorted = [...claim.keys];
      sorted.sort((one, other) => (one.key < other.key ? -1 : 1));
      return begin(tx, { ...claim, keys: sorted });
    }),
  },
  "a thousand keys are begun": {
    "writes the first hundred keys alone": beginning((begin) => (tx, claim) => {
      const { nonce, keys: begun } = begin(tx, { ...claim, keys: claim.keys.slice(0, 100) });
      return { nonce, keys: claim.keys.map((_key, index) => begun[index] ?? { status: "begun" }) };
    }),
  },
  "hostile keys are begun": {
    "takes small and capital letters for the same": beginning((begin) => (tx, claim) => {
      const seen = new Map(
        claim.keys.map((one) => [one.key.toLowerCase(), { ...one, key: one.key.toLowerCase() }]),
      );
      const { nonce, keys: begun } = begin(tx, { ...claim, keys: [...seen.values()] });
      return { nonce, keys: claim.keys.map((_key, index) => begun[index] ?? { status: "begun" }) };
    }),
  },
  "hostile tokens, fingerprints and nonces": {
    "keeps tokens in small letters": beside("after", `UPDATE ${keys} SET token = lower(token)`),
  },
  "an unfit claim": {
    "takes an unfit claim for one without keys": beginning((begin) => (tx, claim) => {
      try {
        return begin(tx, claim);
      } catch {
        return { nonce: "fresh", keys: [] };
      }
    }),
  },
  "of payments with one nonce at once": {
    "forgets each nonce": beside("before", "DELETE FROM countersign_nonces"),
  },
  "of payments of one key at once": {
    "begins each key anew": beside("before", `UPDATE ${keys} SET state = 'free'`),
  },
  "operators find a key": {
    "hides from operators what it paid": beside("after", `UPDATE ${keys} SET state = 'free'`),
  },
  "undo takes back": {
    "leaves a key done that was undone": ({ database }) => ({
      undo: () => void database.exec("ROLLBACK TO countersign; RELEASE countersign"),
    }),
    "frees the key and keeps what was written": ({ database }) => ({
      undo: (_tx, given) => void database.exec(`RELEASE countersign; ${freed(given)}`),
    }),
    "takes the nonce back with the key": ending(
      (undo) => (tx, given, more) => {
        void undo(tx, given, more);
        tx.exec("DELETE FROM countersign_nonces");
      },
      "undo",
    ),
  },
  "of several keys each is kept or undone": {
    "rolls back to the first savepoint of several": ({ database }) => ({
      keep: (_tx, _keys, more) => void (more || database.exec("RELEASE countersign")),
    }),
    "takes back with a key that the one before it was freed": ({ database }) => ({
      undo(_tx, given, more) {
        database.exec(`ROLLBACK TO countersign; ${freed(given)}`);
        if (!more) database.exec("RELEASE countersign");
      },
    }),
  },
  "without keys begin sets a savepoint": {
    "sets no savepoint without keys": beginning((begin) => (tx, claim) => {
      const begun = begin(tx, claim);
      if (claim.keys.length === 0) tx.exec("RELEASE countersign");
      return begun;
    }),
  },
  "undo of a key leaves those that were answered": {
    "frees what it has only answered": ending(
      (undo) => (tx, given, more) => {
        void undo(tx, given, more);
        tx.exec(`UPDATE ${keys} SET state = 'free'`);
      },
      "undo",
    ),
  },
  "a statement that the engine refuses": {
    "calls each error a conflict": () => ({ faultOf: () => "conflict" }),
  },
  "a handler's own COMMIT is told without keys": {
    "looks for the transaction of its keys alone": ending(
      (keep) => (tx, given, more) => (given.length > 0 ? keep(tx, given, more) : undefined),
      "keep",
    ),
  },
  "a handler's own COMMIT leaves no key done": {
    "leaves a key done that no handler has seen": onlyTold,
  },
  ...Object.fromEntries(
    ["an error that the handler swallowed", "a handler's own COMMIT or ROLLBACK"].map((told) => [
      told,
      {
        [`tells nobody about ${told}`]: ending(
          (keep) =>
            (...given) => {
              try {
                void keep(...given);
              } catch {
                // Nothing is told.
              }
            },
          "keep",
        ),
        [`frees the key after ${told}`]: onlyTold,
      },
    ]),
  ),
  ...Object.fromEntries(
    ["its own COMMIT or ROLLBACK", "an error that it swallowed"].map((what) => [
      `what a handler commits after ${what}`,
      {
        [`holds only what is still done after ${what}`]: ({ database }) => {
          const end = (): void => {
            if (database.inTransaction !== false) return;
            database.exec(`UPDATE ${keys} SET state = 'held', reason = 'broken' WHERE state = 'done'`);
            throw transactionBroken("it is over");
          };
          return { keep: end, undo: end };
        },
      },
    ]),
  ),
};
