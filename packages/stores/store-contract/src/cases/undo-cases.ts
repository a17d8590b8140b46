import assert from "node:assert/strict";
import type { TransactionBegun } from "@countersign/idempotency";
import { type Steps, answerOf } from "@countersign/idempotency/door";
import { claimBy, fenceOf, key } from "../claims.ts";
import {
  type PaymentCase,
  begin,
  claimOf,
  inTransaction,
  isUsed,
  keyOf,
  nonceOf,
  pay,
  refuse,
  statusesOf,
  writtenBy,
} from "../payments.ts";
import { outcomeOf } from "../waiting.ts";

/** What a handler that refuses leaves, and what an error means. */
export const undoCases: readonly PaymentCase[] = [
  {
    name: "undo takes back what was written and frees the key, for both modes; the nonce stays used",
    async check(harness) {
      const { idempotency } = harness.store;
      const claim = claimOf([keyOf("a")]);
      assert.deepEqual(statusesOf(await refuse(harness, claim)), ["begun"]);
      assert.deepEqual(await writtenBy(harness), [], "what the handler wrote must be taken back");
      assert.equal(await idempotency.read(key), undefined, "the key must be free");
      assert.ok(await isUsed(harness, claim), "the nonce must stay used");
      fenceOf(await idempotency.claim(key, claimBy("b")), "a key that was undone must be acquired");
      await idempotency.release(key, "b");
      assert.deepEqual(statusesOf(await pay(harness, claimOf([keyOf("c")]))), ["begun"]);
    },
  },
  {
    name: "of several keys each is kept or undone by itself",
    async check(harness) {
      const { idempotency, transactions } = harness.store;
      const steps = ["keep", "undo", "undo", "keep", "undo"] as const;
      const keys = steps.map((step, index) => keyOf("a", `${index} ${step}`));
      const claim = claimOf(keys);
      await begin(harness, claim, function* each(tx): Steps<void> {
        for (const [index, one] of keys.entries()) {
          yield* answerOf(harness.write(tx, one.key));
          const step = steps[index] ?? "undo";
          yield* answerOf(transactions[step](tx, [one], index < keys.length - 1));
        }
      });
      assert.deepEqual(await writtenBy(harness), ["0 keep", "3 keep"]);
      const states = await Promise.all(
        keys.map(async (one) => (await idempotency.read(one.key))?.state ?? "free"),
      );
      assert.deepEqual(states, ["done", "free", "free", "done", "free"]);
      assert.ok(await isUsed(harness, claim), "the nonce must stay used");
    },
  },
  {
    name: "without keys begin sets a savepoint, to which undo rolls back and which keep ends",
    async check(harness) {
      const { transactions } = harness.store;
      const claim = claimOf([], { nonce: nonceOf("without keys") });
      const begun = await inTransaction(harness.store, function* work(tx): Steps<TransactionBegun> {
        yield* answerOf(harness.write(tx, "before"));
        const answer = yield* answerOf(transactions.begin(tx, claim));
        yield* answerOf(harness.write(tx, "undone"));
        yield* answerOf(transactions.undo(tx, [], true));
        yield* answerOf(harness.write(tx, "kept"));
        yield* answerOf(transactions.keep(tx, [], false));
        return answer;
      });
      assert.deepEqual(begun, { nonce: "fresh", keys: [] });
      assert.deepEqual(await writtenBy(harness), ["before", "kept"]);
      assert.ok(await isUsed(harness, claim), "the nonce must have committed");
    },
  },
  {
    name: "undo of a key leaves those that were answered, and those of others, as they are",
    async check(harness) {
      const { idempotency } = harness.store;
      await pay(harness, claimOf([keyOf("a", "paid")]));
      await refuse(harness, claimOf([keyOf("b"), keyOf("b", "paid")]));
      assert.equal((await idempotency.read("paid"))?.token, "a");
      assert.equal(await idempotency.read(key), undefined);
      assert.deepEqual(await writtenBy(harness), ["paid"]);
    },
  },
  {
    name: "a statement that the engine refuses is a fault named refused, and can be undone",
    async check(harness) {
      const { idempotency, transactions } = harness.store;
      await pay(harness, claimOf([keyOf("a", "taken")]));
      const claim = claimOf([keyOf("b")]);
      const errors: unknown[] = [];
      await refuse(harness, claim, function* writeTwice(tx): Steps<void> {
        try {
          yield* answerOf(harness.write(tx, "taken"));
        } catch (error) {
          errors.push(error);
        }
      });
      assert.deepEqual(
        errors.map((error) => transactions.faultOf(error)),
        ["refused"],
      );
      assert.equal(await idempotency.read(key), undefined, "the key must be free");
      assert.ok(await isUsed(harness, claim), "the nonce must stay used");
      const { error } = await outcomeOf(() => Promise.reject(new Error("the handler's own")));
      assert.equal(transactions.faultOf(error?.thrown), undefined, "an error of nobody's engine is no fault");
    },
  },
];
