import assert from "node:assert/strict";
import type { TransactionBegun, TransactionClaim } from "@countersign/idempotency";
import { type Steps, answerOf } from "@countersign/idempotency/door";
import {
  type PaymentCase,
  type Payments,
  claimOf,
  keyOf,
  nonceOf,
  pay,
  statusesOf,
  writtenBy,
} from "../payments.ts";
import { soon } from "../transactions.ts";
import { type Outcome, gate, outcomeOf } from "../waiting.ts";

const seenOrNot = [
  ["seen once that one commits", "commit", "seen"],
  ["fresh once that one rolls back", "roll back", "fresh"],
] as const;

const doneOrNot = [
  ["done once that one commits", "commit", "done"],
  ["begun once that one rolls back", "roll back", "begun"],
] as const;

/** Claims beside an open transaction, of engines that have several. */
export const waitingCases: readonly PaymentCase[] = [
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
  {
    name: "a wait for an open transaction ends after waitMs, with the fault locked and nothing kept",
    needs: ["waiting"],
    async check(harness) {
      const { transactions, idempotency } = harness.store;
      const open = await openPayment(harness);
      const late = claimOf([keyOf("b"), keyOf("b", "another key")], { waitMs: 200 });
      const { error } = await outcomeOf(() => pay(harness, late));
      await open.end("commit");
      assert.equal(transactions.faultOf(error?.thrown), "locked", "the wait was too long");
      assert.equal(await idempotency.read("another key"), undefined, "nothing of it must be kept");
      assert.deepEqual(statusesOf(await pay(harness, claimOf([keyOf("b")]))), ["done"]);
    },
  },
];

type Ending = "commit" | "roll back";

/** What the claim is answered that waits for an open payment, once that one has ended. */
async function waitedFor(harness: Payments, how: Ending, claim: TransactionClaim): Promise<TransactionBegun> {
  const open = await openPayment(harness);
  const waiting: Promise<Outcome<TransactionBegun>> = outcomeOf(() => pay(harness, claim));
  const early = await soon(waiting);
  await open.end(how);
  assert.equal(early, undefined, "the open transaction must be waited for");
  const { value, error } = await waiting;
  if (value === undefined) throw error?.thrown;
  const paid = (how === "commit" ? 1 : 0) + statusesOf(value).filter((status) => status === "begun").length;
  assert.equal((await writtenBy(harness)).length, paid, "each payment must be made once");
  return value;
}

/** A payment of `a` whose handler has written, and waits. */
async function openPayment(harness: Payments): Promise<{ end(how: Ending): Promise<unknown> }> {
  const [ending, finish] = gate<Ending>();
  const [open, opened] = gate<"open">();
  const payment = outcomeOf(() =>
    pay(harness, claimOf([keyOf("a")]), function* work(tx, keys): Steps<void> {
      yield* answerOf(harness.write(tx, keys[0]?.key ?? ""));
      opened("open");
      if ((yield* answerOf(ending)) === "roll back") throw new Error("rolled back");
    }),
  );
  await Promise.race([open, payment]);
  return {
    async end(how) {
      finish(how);
      const { error } = await payment;
      assert.equal(error === undefined, how === "commit", "the open payment must end as its handler does");
    },
  };
}
