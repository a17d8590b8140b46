// A transaction waits in begin() until the one before it has ended.
import { setTimeout as pause } from "node:timers/promises";
import type { TransactionClaim, TransactionStore } from "@countersign/idempotency";
import type { Connection } from "../../../store-sql/test/sqlite/connections.ts";
import type { WrongTransactions } from "../payment-harness.ts";
import { OpenTransactions } from "./open-transactions.ts";
import type { WrongPayments } from "./wrong-payments.ts";

/** What a claim does that meets an open transaction. */
type Meeting = "waits" | "goes on" | "expects a commit" | "expects a rollback";

class LockWait extends Error {}

/** A right store, unless a claim does something else than wait. */
export function waitingTransactions(meets: Meeting = "waits"): WrongTransactions {
  return ({ database, stores: { transactions } }) => {
    const open = new OpenTransactions(database);
    const store: Partial<TransactionStore<Connection, "async">> = {
      mode: "async",
      run: (work) => open.run(work),
      async begin(tx, claim) {
        const meeting = open.held;
        if (meeting !== undefined && meets === "goes on") {
          return { nonce: "fresh", keys: claim.keys.map(() => ({ status: "begun" })) };
        }
        const late = pause(claim.waitMs).then(() => "late");
        if (meeting !== undefined && (await Promise.race([meeting, late])) === "late") throw new LockWait();
        open.lock(tx);
        if (meeting !== undefined && meets === "expects a commit") return { nonce: "seen", keys: [] };
        if (meeting === undefined || meets === "waits") return transactions.begin(database, claim);
        database.exec("UPDATE countersign_idempotency SET state = 'free'; DELETE FROM countersign_nonces");
        return transactions.begin(database, claim);
      },
      async keep(tx, keys, more) {
        if (open.has(tx)) await transactions.keep(database, keys, more);
      },
      openGate: (tx) => open.openGate(tx),
      async closeGate(tx) {
        open.closeGate(tx);
        return { unanswered: 0, hasWritten: false, idleCommands: 0 };
      },
      async assertOpen(tx, keys) {
        if (open.has(tx)) await transactions.assertOpen(database, keys);
      },
      async free(_tx, keys) {
        await transactions.free(database, keys);
      },
      faultOf: (error) => (error instanceof LockWait ? "locked" : transactions.faultOf(error)),
    };
    // SQLite's harness has a store of mode sync, whose place this one takes.
    return store;
  };
}

/** Takes a key by its last step alone, as one that locks no row. */
const lockless: WrongTransactions = ({ database, stores: { transactions } }) => {
  const open = new OpenTransactions(database);
  const claims = new Map<Connection, TransactionClaim>();
  const store: Partial<TransactionStore<Connection, "async">> = {
    mode: "async",
    run: (work) => open.run(work),
    async begin(tx, claim) {
      claims.set(tx, claim);
      return { nonce: "fresh", keys: claim.keys.map(() => ({ status: "begun" })) };
    },
    async keep(tx, keys, more) {
      const claim = claims.get(tx);
      open.lock(tx);
      if (claim !== undefined) await transactions.begin(database, claim);
      await transactions.keep(database, keys, more);
    },
  };
  return store;
};

/** Commits the key as done before its handler works. */
const tooEarly: WrongTransactions = ({ database, stores: { transactions } }) => {
  const open = new OpenTransactions(database);
  const store: Partial<TransactionStore<Connection, "async">> = {
    mode: "async",
    run: (work) => open.run(work),
    async begin(tx, claim) {
      open.lock(tx);
      const begun = await transactions.begin(database, claim);
      await transactions.keep(database, claim.keys, false);
      database.exec("COMMIT");
      return begun;
    },
    async keep() {
      database.exec("BEGIN IMMEDIATE");
    },
  };
  return store;
};

const committed = [
  "a key of an open transaction is waited for, and done",
  "a nonce of an open transaction is waited for, and seen once that one commits",
  "a nonce of an open transaction is waited for, and seen once that one gives its key back",
  "a key that was released is waited for",
  "a run whose lease has ended is waited for",
];
const rolledBack = [
  "a key of an open transaction is waited for, and begun once that one gives it back",
  "a key of an open transaction is waited for, and begun once that one rolls back",
  "a nonce of an open transaction is waited for, and fresh",
];

const does = (meets: Meeting, fails: string) =>
  [`${meets} where ${fails}`, waitingTransactions(meets)] as const;
const failing = (meets: Meeting, all: readonly string[]): WrongPayments =>
  Object.fromEntries(
    all.map((fails) => [fails, Object.fromEntries([does("goes on", fails), does(meets, fails)])]),
  );

export const waitingPayments: WrongPayments = {
  ...failing("expects a commit", rolledBack),
  ...failing("expects a rollback", committed),
  "a key of an open transaction is done for nobody": { "commits the key first": tooEarly },
  "while an open transaction takes a run over": { "takes a run over at its end": lockless },
  "a step of lease mode that waited": { "lets lease mode go on beside it": lockless },
  "a statement behind closeGate is rejected": {
    "lets late statements through": (platform) => ({
      ...waitingTransactions()(platform),
      closeGate: () => Promise.resolve({ unanswered: 0, hasWritten: false, idleCommands: 0 }),
    }),
    "stays closed for the next handler": (platform) => ({
      ...waitingTransactions()(platform),
      openGate: () => {},
    }),
  },
  "a wait for an open transaction ends": {
    "has no fault for a wait that was too long": (platform) => ({
      ...waitingTransactions()(platform),
      faultOf: () => undefined,
    }),
  },
};
