// Stores with transactions, each with one thing wrong. All but the waiting ones are SQLite in memory.
import type { TransactionBegun, TransactionStore } from "@countersign/idempotency";
import { transactionBroken } from "@countersign/idempotency/store";
import type { SqliteDatabase } from "@countersign/store-sqlite";
import type { WrongTransactions } from "../payment-harness.ts";

export interface WrongPayments {
  readonly does: string;
  /** How the name of the case begins that must notice. */
  readonly fails: string;
  readonly wrong: WrongTransactions;
}

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

export const wrongPayments: readonly WrongPayments[] = [
  {
    does: "begins a key without writing it",
    fails: "a key that was begun is done for everybody",
    wrong: beside("after", `UPDATE ${keys} SET state = 'free'`),
  },
  {
    does: "keeps the key running",
    fails: "a key that was begun is done for everybody",
    wrong: beside("after", `UPDATE ${keys} SET state = 'run'`),
  },
  {
    does: "forgets the nonce of what it paid",
    fails: "a key that was begun is done for everybody",
    wrong: beside("after", "DELETE FROM countersign_nonces"),
  },
  {
    does: "begins a key anew for the token that has paid it",
    fails: "a key that was begun is done for everybody",
    wrong: beginning((begin) => (tx, claim) => {
      tx.exec(`UPDATE ${keys} SET state = 'free' WHERE token = '${claim.keys[0]?.token}'`);
      return begin(tx, claim);
    }),
  },
  {
    does: "commits what a failed handler has written",
    fails: "a transaction that fails leaves no key",
    wrong: ({ stores: { transactions } }) => ({
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
  {
    does: "claims no nonce",
    fails: "a nonce that was used before is seen",
    wrong: beginning(
      (begin) =>
        (tx, { nonce: _nonce, ...claim }) =>
          begin(tx, claim),
    ),
  },
  {
    does: "touches the keys of a seen nonce",
    fails: "a nonce that was used before is seen",
    wrong: ({ database, stores: { transactions, idempotency } }) => ({
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
  {
    does: "takes over a key that is done",
    fails: "a key that is done, running or held is answered",
    wrong: beside("before", `UPDATE ${keys} SET state = 'free' WHERE state = 'done'`),
  },
  {
    does: "takes over a run that is alive",
    fails: "a key that is done, running or held is answered",
    wrong: beside("before", `UPDATE ${keys} SET state = 'free' WHERE state = 'run'`),
  },
  {
    does: "forgets the nonce where no key was begun",
    fails: "a key that is done, running or held is answered",
    wrong: beginning((begin) => (tx, claim) => {
      const begun = begin(tx, claim);
      if (begun.keys.every(({ status }) => status !== "begun")) tx.exec("DELETE FROM countersign_nonces");
      return begun;
    }),
  },
  {
    does: "runs an expired run again that an operator has to look at",
    fails: "a run whose lease has ended is held",
    wrong: beginning((begin) => (tx, claim) => begin(tx, { ...claim, recovery: "rerun" })),
  },
  {
    does: "answers held for an expired run, and writes nothing",
    fails: "a run whose lease has ended is held",
    wrong: beside("after", `UPDATE ${keys} SET state = 'run' WHERE state = 'held'`),
  },
  {
    does: "holds each expired run",
    fails: "a run whose lease has ended is taken over",
    wrong: beginning((begin) => (tx, claim) => begin(tx, { ...claim, recovery: "hold" })),
  },
  {
    does: "leaves the old owner its token",
    fails: "a run whose lease has ended is taken over",
    wrong: beside("after", `UPDATE ${keys} SET state = 'held', token = 'owner'`),
  },
  {
    does: "begins its fences anew",
    fails: "a key that was released begins",
    wrong: beside("after", `UPDATE ${keys} SET fence = 1`),
  },
  {
    does: "remembers done keys for ever",
    fails: "a key is done for the retention",
    wrong: beside("after", `UPDATE ${keys} SET until_ms = 9000000000000`),
  },
  {
    does: "remembers done keys for a minute",
    fails: "a key is done for the retention",
    wrong: beside("after", `UPDATE ${keys} SET until_ms = 1800000060000`),
  },
  {
    does: "forgets what an operator has decided",
    fails: "an operator's decision stays",
    wrong: beside("after", `UPDATE ${keys} SET decision = NULL`),
  },
  {
    does: "answers in an order of its own",
    fails: "of several keys each is answered",
    wrong: beginning((begin) => (tx, claim) => {
      const sorted = [...claim.keys];
      sorted.sort((one, other) => (one.key < other.key ? -1 : 1));
      return begin(tx, { ...claim, keys: sorted });
    }),
  },
  {
    does: "writes the first hundred keys alone",
    fails: "a thousand keys are begun",
    wrong: beginning((begin) => (tx, claim) => {
      const { nonce, keys: begun } = begin(tx, { ...claim, keys: claim.keys.slice(0, 100) });
      return { nonce, keys: claim.keys.map((_key, index) => begun[index] ?? { status: "begun" }) };
    }),
  },
  {
    does: "takes small and capital letters for the same",
    fails: "hostile keys are begun",
    wrong: beginning((begin) => (tx, claim) => {
      const seen = new Map(
        claim.keys.map((one) => [one.key.toLowerCase(), { ...one, key: one.key.toLowerCase() }]),
      );
      const { nonce, keys: begun } = begin(tx, { ...claim, keys: [...seen.values()] });
      return { nonce, keys: claim.keys.map((_key, index) => begun[index] ?? { status: "begun" }) };
    }),
  },
  {
    does: "keeps tokens in small letters",
    fails: "hostile tokens, fingerprints and nonces",
    wrong: beside("after", `UPDATE ${keys} SET token = lower(token)`),
  },
  {
    does: "takes an unfit claim for one without keys",
    fails: "an unfit claim",
    wrong: beginning((begin) => (tx, claim) => {
      try {
        return begin(tx, claim);
      } catch {
        return { nonce: "fresh", keys: [] };
      }
    }),
  },
  {
    does: "forgets each nonce",
    fails: "of payments with one nonce at once",
    wrong: beside("before", "DELETE FROM countersign_nonces"),
  },
  {
    does: "begins each key anew",
    fails: "of payments of one key at once",
    wrong: beside("before", `UPDATE ${keys} SET state = 'free'`),
  },
  {
    does: "hides from operators what it paid",
    fails: "operators find a key",
    wrong: beside("after", `UPDATE ${keys} SET state = 'free'`),
  },
  {
    does: "leaves a key done that was undone",
    fails: "undo takes back",
    wrong: ({ database }) => ({
      undo: () => void database.exec("ROLLBACK TO countersign; RELEASE countersign"),
    }),
  },
  {
    does: "frees the key and keeps what was written",
    fails: "undo takes back",
    wrong: ({ database }) => ({
      undo: (_tx, given) => void database.exec(`RELEASE countersign; ${freed(given)}`),
    }),
  },
  {
    does: "takes the nonce back with the key",
    fails: "undo takes back",
    wrong: ending(
      (undo) => (tx, given, more) => {
        void undo(tx, given, more);
        tx.exec("DELETE FROM countersign_nonces");
      },
      "undo",
    ),
  },
  {
    does: "rolls back to the first savepoint of several",
    fails: "of several keys each is kept or undone",
    wrong: ({ database }) => ({
      keep: (_tx, _keys, more) => void (more || database.exec("RELEASE countersign")),
    }),
  },
  {
    does: "takes back with a key that the one before it was freed",
    fails: "of several keys each is kept or undone",
    wrong: ({ database }) => ({
      undo(_tx, given, more) {
        database.exec(`ROLLBACK TO countersign; ${freed(given)}`);
        if (!more) database.exec("RELEASE countersign");
      },
    }),
  },
  {
    does: "sets no savepoint without keys",
    fails: "without keys begin sets a savepoint",
    wrong: beginning((begin) => (tx, claim) => {
      const begun = begin(tx, claim);
      if (claim.keys.length === 0) tx.exec("RELEASE countersign");
      return begun;
    }),
  },
  {
    does: "frees what it has only answered",
    fails: "undo of a key leaves those that were answered",
    wrong: ending(
      (undo) => (tx, given, more) => {
        void undo(tx, given, more);
        tx.exec(`UPDATE ${keys} SET state = 'free'`);
      },
      "undo",
    ),
  },
  {
    does: "calls each error a conflict",
    fails: "a statement that the engine refuses",
    wrong: () => ({ faultOf: () => "conflict" }),
  },
  ...(["an error that the handler swallowed", "a handler's own COMMIT or ROLLBACK"] as const).flatMap(
    (fails): WrongPayments[] => [
      {
        does: `tells nobody about ${fails}`,
        fails,
        wrong: ending(
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
      },
      {
        does: `frees the key after ${fails}`,
        fails,
        wrong: ({ database }) => ({
          keep() {
            if (database.inTransaction === false) throw transactionBroken("it is over");
          },
        }),
      },
    ],
  ),
  ...(["its own COMMIT or ROLLBACK", "an error that it swallowed"] as const).map((what): WrongPayments => ({
    does: `holds only what is still done after ${what}`,
    fails: `what a handler commits after ${what}`,
    wrong({ database }) {
      const end = (): void => {
        if (database.inTransaction !== false) return;
        database.exec(`UPDATE ${keys} SET state = 'held', reason = 'broken' WHERE state = 'done'`);
        throw transactionBroken("it is over");
      };
      return { keep: end, undo: end };
    },
  })),
  {
    does: "looks for the transaction of its keys alone",
    fails: "a handler's own COMMIT is told without keys",
    wrong: ending(
      (keep) => (tx, given, more) => (given.length > 0 ? keep(tx, given, more) : undefined),
      "keep",
    ),
  },
  {
    does: "leaves a key done that no handler has seen",
    fails: "a handler's own COMMIT leaves no key done",
    wrong: ({ database }) => ({
      keep() {
        if (database.inTransaction === false) throw transactionBroken("it is over");
      },
    }),
  },
];
