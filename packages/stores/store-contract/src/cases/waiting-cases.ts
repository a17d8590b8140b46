import assert from "node:assert/strict";
import type { TransactionBegun, TransactionClaim } from "@countersign/idempotency";
import { type Steps, answerOf } from "@countersign/idempotency/internal";
import {
  type PaymentCase,
  type Payments,
  begin,
  claimOf,
  isUsed,
  keyOf,
  nonceOf,
  pay,
  paymentRules,
  statusesOf,
  writtenBy,
} from "../payments.ts";
import { key, shortLeaseMs, take } from "../claims.ts";
import { soon } from "../transactions.ts";
import { type Outcome, openUntilEnded, outcomeOf, pass } from "../waiting.ts";

const seenOrNot = [
  ["seen once that one commits", "commit", "seen"],
  ["seen once that one gives its key back", "free", "seen"],
  ["fresh once that one rolls back", "roll back", "fresh"],
] as const;

const doneOrNot = [
  ["done once that one commits", "commit", "done"],
  ["begun once that one gives it back", "free", "begun"],
  ["begun once that one rolls back", "roll back", "begun"],
] as const;

/** What a transaction takes over: each is another row than none. */
const takenOver: readonly [string, (harness: Payments) => Promise<unknown>][] = [
  ["a key that was released", async ({ store }) => store.idempotency.release(key, "owner")],
  ["a run whose lease has ended", (harness) => pass(harness, shortLeaseMs)],
];

/** Claims beside an open transaction, of engines that have several. */
export const waitingCases: readonly PaymentCase[] = [
  ...paymentRules(["waiting"], {
    async "a wait for an open transaction ends after waitMs, with the fault locked and nothing kept"(
      harness,
    ) {
      const { transactions, idempotency } = harness.store;
      const open = await openPayment(harness, "commit");
      const late = claimOf([keyOf("b"), keyOf("b", "another key")], { waitMs: 200 });
      const { error } = await outcomeOf(() => pay(harness, late));
      await open.end();
      assert.equal(transactions.faultOf(error?.thrown), "locked", "the wait was too long");
      assert.equal(await idempotency.read("another key"), undefined, "nothing of it must be kept");
      assert.equal(await isUsed(harness, late), false, "its nonce must be as it was");
      assert.deepEqual(statusesOf(await pay(harness, claimOf([keyOf("c")]))), ["done"]);
    },
  }),
  ...doneOrNot.map(([what, how, status]): PaymentCase => ({
    name: `a key of an open transaction is waited for, and ${what}`,
    needs: ["waiting"],
    async check(harness) {
      const waited = await waitedFor(harness, how, claimOf([keyOf("b")]));
      assert.deepEqual(statusesOf(waited), [status]);
    },
  })),
  ...seenOrNot.map(([what, how, nonce]): PaymentCase => ({
    name: `a nonce of an open transaction is waited for, and ${what}`,
    needs: ["waiting"],
    async check(harness) {
      const same = nonceOf("nonce-of-a");
      const waited = await waitedFor(harness, how, claimOf([keyOf("b", "another key")], { nonce: same }));
      assert.equal(waited.nonce, nonce);
    },
  })),
  ...takenOver.map(([what, make]): PaymentCase => ({
    name: `${what} is waited for while an open transaction takes it over`,
    needs: ["waiting"],
    async check(harness) {
      await take(harness.store.idempotency, "owner", { leaseMs: shortLeaseMs });
      await make(harness);
      const waited = await waitedFor(harness, "commit", claimOf([keyOf("b")]));
      assert.deepEqual(statusesOf(waited), ["done"]);
    },
  })),
];

type Ending = "commit" | "free" | "roll back";

/** What the claim is answered that waits for an open payment, once that one has ended. */
async function waitedFor(harness: Payments, how: Ending, claim: TransactionClaim): Promise<TransactionBegun> {
  const open = await openPayment(harness, how);
  const waiting: Promise<Outcome<TransactionBegun>> = outcomeOf(() => pay(harness, claim));
  const early = await soon(waiting);
  await open.end();
  assert.equal(early, undefined, "the open transaction must be waited for");
  const { value, error } = await waiting;
  if (value === undefined) throw error?.thrown;
  const paid = (how === "commit" ? 1 : 0) + statusesOf(value).filter((status) => status === "begun").length;
  assert.equal((await writtenBy(harness)).length, paid, "each payment must be made once");
  return value;
}

/** A payment of `a` whose handler has written, and waits. With `free` it has not written, and gives its key back. */
async function openPayment(harness: Payments, how: Ending): Promise<{ end(): Promise<void> }> {
  const { transactions } = harness.store;
  const open = await openUntilEnded<Ending>((opened, ending) =>
    begin(harness, claimOf([keyOf("a")]), function* work(tx, keys): Steps<void> {
      if (how !== "free") yield* answerOf(harness.write(tx, keys[0]?.key ?? ""));
      opened();
      if ((yield* answerOf(ending)) === "roll back") throw new Error("rolled back");
      yield* answerOf(how === "free" ? transactions.free(tx, keys) : transactions.keep(tx, keys, false));
    }),
  );
  return { end: () => open.end(how) };
}
