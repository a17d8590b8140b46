// Stores with transactions, each with one thing wrong. All but the waiting ones are SQLite in memory.
import type { TransactionBegun, TransactionStore } from "@countersign/idempotency";
import { transactionBroken } from "@countersign/idempotency/store";
import type { SqliteDatabase } from "@countersign/store-sql";
import type { Connection } from "../../../store-sql/test/sqlite/connections.ts";
import type { WrongTransactions } from "../payment-harness.ts";
import type { FoundBy } from "./wrong-store.ts";

export type WrongPayments = FoundBy<WrongTransactions>;

type Begin = TransactionStore<SqliteDatabase>["begin"];
type Ending = TransactionStore<SqliteDatabase>["keep"];
type Hold = TransactionStore<Connection>["hold"];

const keys = "countersign_idempotency";

/** The store whose begin() is another one, made of the right one. */
function beginning(
  change: (begin: (...given: Parameters<Begin>) => TransactionBegun, database: Connection) => Begin,
): WrongTransactions {
  return ({ database, stores: { transactions } }) => ({
    begin: change((tx, claim) => transactions.begin(tx as never, claim) as TransactionBegun, database),
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
  (
    change: (right: Ending, database: Connection) => Ending,
    name: "keep" | "assertOpen" | "free",
  ): WrongTransactions =>
  ({ database, stores: { transactions } }) => ({
    [name]: change((tx, given, more) => transactions[name](tx as never, given, more), database),
  });

/** The store whose hold() is another one, made of the right one. */
const holding =
  (change: (hold: Hold, database: Connection) => Hold): WrongTransactions =>
  ({ database, stores: { transactions } }) => ({
    hold: change((...given) => transactions.hold(...given), database),
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
    "keeps the key running": beside("after", `UPDATE ${keys} SET state = 'running'`),
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
      `UPDATE ${keys} SET state = 'free' WHERE state = 'running'`,
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
      `UPDATE ${keys} SET state = 'running' WHERE state = 'held'`,
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
    "remembers done keys for a minute": ending(
      (keep) => (tx, given, more) => {
        void keep(tx, given, more);
        tx.exec(`UPDATE ${keys} SET until_ms = 1800000060000`);
      },
      "keep",
    ),
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
  "a handler that fails leaves nothing": {
    "tells a transaction that is open as broken": () => ({
      assertOpen() {
        throw transactionBroken("it is over");
      },
    }),
    "commits a key when its handler fails": ({ database, stores: { transactions } }) => ({
      assertOpen(tx, given) {
        void transactions.assertOpen(tx, given);
        database.exec("COMMIT; BEGIN");
      },
    }),
    "says of a key of which nothing committed that it is held": holding((hold) => async (given, ...more) => {
      await hold(given, ...more);
      return new Set(given.map(({ key }) => key));
    }),
  },
  "of several keys each is kept or freed": {
    "leaves a key done that was given back": () => ({ free() {} }),
    "removes a key that was given back with its nonce": ending(
      (free) => (tx, given, more) => {
        void free(tx, given, more);
        tx.exec("DELETE FROM countersign_nonces");
      },
      "free",
    ),
    "ends the savepoint with the first key of several": ({ database }) => ({
      keep: () => void database.exec("RELEASE countersign"),
    }),
    "ends the savepoint with a key that was given back": ending(
      (free, database) => (tx, given, more) => {
        void free(tx, given, more);
        database.exec("RELEASE countersign");
      },
      "free",
    ),
  },
  "without keys begin sets a savepoint": {
    "sets no savepoint without keys": beginning((begin, database) => (tx, claim) => {
      const begun = begin(tx, claim);
      if (claim.keys.length === 0) database.exec("RELEASE countersign");
      return begun;
    }),
  },
  "free leaves the keys that were answered": {
    "frees what it has only answered": ending(
      (free) => (tx, given, more) => {
        void free(tx, given, more);
        tx.exec(`UPDATE ${keys} SET state = 'free'`);
      },
      "free",
    ),
    "frees each key that this transaction has begun": ending(
      (free) => (tx, given, more) => {
        void free(tx, given, more);
        tx.exec(`UPDATE ${keys} SET state = 'free' WHERE token = '${given[0]?.token}'`);
      },
      "free",
    ),
  },
  "a transaction that fails behind free": {
    "commits what it gives back": ending(
      (free, database) => (tx, given, more) => {
        void free(tx, given, more);
        database.exec(`UPDATE ${keys} SET state = 'running'; COMMIT; BEGIN`);
      },
      "free",
    ),
  },
  "what commits before keep is running": {
    "begins a key as done": beside("after", `UPDATE ${keys} SET state = 'done'`),
    "lets an expired run of a transaction be run again": beside(
      "after",
      `UPDATE ${keys} SET recovery = 'rerun'`,
    ),
  },
  "what commits before keep is held for lease mode": {
    "lets lease mode run an expired transaction again": beside(
      "after",
      `UPDATE ${keys} SET recovery = 'rerun'`,
    ),
  },
  "an owner that said hold leaves its expired run": {
    "goes by the claim alone": beside("before", `UPDATE ${keys} SET recovery = 'rerun'`),
  },
  "keep rejects for a key": {
    "makes done what it finds": () => ({ keep() {} }),
  },
  "hold leaves a key done": {
    "holds what is done": holding((hold, database) => async (given, reason, ...more) => {
      const held = await hold(given, reason, ...more);
      database.exec(`UPDATE ${keys} SET state = 'held', reason = '${reason}' WHERE state = 'done'`);
      return held;
    }),
    "does not name what is done": holding((hold, database) => async (given, ...more) => {
      const of = database.prepare(`SELECT key FROM ${keys} WHERE state = 'done'`).all().length;
      const held = await hold(given, ...more);
      return of > 0 ? new Set() : held;
    }),
  },
  "hold leaves to an operator": {
    "holds nothing": holding(() => () => new Set()),
    "holds the first of several keys alone": holding(
      (hold) =>
        (given, ...more) =>
          hold(given.slice(0, 1), ...more),
    ),
    "names a key that was never begun": holding((hold) => async (given, ...more) => {
      const held = await hold(given, ...more);
      return held.size === 0 ? held : new Set(given.map(({ key }) => key));
    }),
    "names a key once alone": holding((hold, database) => async (given, ...more) => {
      const of = (state: string) =>
        database.prepare(`SELECT key FROM ${keys} WHERE state = '${state}'`).all().length;
      const before = of("held");
      const held = await hold(given, ...more);
      return of("held") > before ? held : new Set();
    }),
    "keeps a reason of its own": holding(
      (hold) =>
        (given, _reason, ...more) =>
          hold(given, "in doubt", ...more),
    ),
    "frees what it should hold": holding((hold, database) => async (given, ...more) => {
      const held = await hold(given, ...more);
      database.exec(freed(given));
      return held;
    }),
    "gives the key to nobody that it holds": holding((hold, database) => async (given, ...more) => {
      const held = await hold(given, ...more);
      database.exec(`UPDATE ${keys} SET token = 'nobody' WHERE state = 'held'`);
      return new Set(given.filter(({ key }) => held.has(key) || key !== "never begun").map(({ key }) => key));
    }),
  },
  "hold leaves another token's key": {
    "holds a key that another token has done": holding((hold, database) => async (given, reason, ...more) => {
      const held = await hold(given, reason, ...more);
      database.exec(`UPDATE ${keys} SET state = 'held', reason = '${reason}' WHERE state = 'done'`);
      return held;
    }),
    "names a key that another token has done": holding((hold) => async (given, ...more) => {
      const held = await hold(given, ...more);
      return new Set([...held, ...given.filter(({ key }) => key === "done").map(({ key }) => key)]);
    }),
    "holds a run of lease mode": holding((hold, database) => async (given, reason, ...more) => {
      const held = await hold(given, reason, ...more);
      database.exec(`UPDATE ${keys} SET state = 'held', reason = '${reason}' WHERE state = 'running'`);
      return held;
    }),
    "holds a key that was given back": holding((hold, database) => async (given, reason, ...more) => {
      const held = await hold(given, reason, ...more);
      const own = given.map(({ token }) => `'${token}'`).join(", ");
      database.exec(`UPDATE ${keys} SET state = 'held' WHERE state = 'free' AND token IN (${own})`);
      return held;
    }),
  },
  "hold in the transaction commits": {
    "holds a key behind the transaction alone": holding(
      (hold) => (given, reason, tx) =>
        tx === undefined ? hold(given, reason) : new Set(given.map(({ key }) => key)),
    ),
    "commits by itself what it holds": holding((hold, database) => (given, reason, tx) => {
      const held = hold(given, reason, tx);
      if (tx !== undefined) database.exec("COMMIT; BEGIN");
      return held;
    }),
  },
  "written counts the changes": {
    "counts the store's own rows": ({ stores: { transactions } }) => ({
      openGate: () => {},
      written: (tx, given) => transactions.written?.(tx, given),
    }),
    "counts nothing": () => ({ written: () => 0 }),
  },
  "a statement that the engine refuses": {
    "calls each error a conflict": () => ({ faultOf: () => "conflict" }),
  },
  "a handler's own COMMIT is told without keys": {
    "looks for no transaction behind a failure without keys": ending(
      (assertOpen) => (tx, given, more) => (given.length > 0 ? assertOpen(tx, given, more) : undefined),
      "assertOpen",
    ),
    "looks for the transaction of its keys alone": ending(
      (keep) => (tx, given, more) => (given.length > 0 ? keep(tx, given, more) : undefined),
      "keep",
    ),
  },
  "a handler's own COMMIT leaves a key free": {
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
  "a handler's own COMMIT or ROLLBACK is told, and": {
    "lets an ended transaction pass when its handler fails": () => ({ assertOpen() {} }),
    "frees the key when a handler fails behind its own end of the transaction": ({ database }) => ({
      assertOpen() {
        if (database.inTransaction === false) throw transactionBroken("it is over");
      },
    }),
  },
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
          return { keep: end, assertOpen: end };
        },
      },
    ]),
  ),
};
