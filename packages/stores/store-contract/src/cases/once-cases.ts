import assert from "node:assert/strict";
import { assertOk, claimBy, decide, key, recordOf, shortLeaseMs, take } from "../claims.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { owner, takeOneOfEach } from "../states.ts";
import { completeAlone, completeIn, inTransaction, soon } from "../transactions.ts";
import { type Outcome, outcomeOf, pass } from "../waiting.ts";

/** A key is ended once: what a transaction pays beside a second `ok` would be a second payment. */
export const onceCases: readonly IdempotencyCase[] = [
  {
    name: "completeIn is lost on a key that its own owner has completed, in the same transaction and later",
    needs: ["transaction"],
    async check(harness) {
      const { store } = harness;
      await take(store, "a");
      await inTransaction(harness, async (tx) => {
        assertOk(await completeIn(store, tx, "a"), "the owner's completion must be ok");
        const again = await completeIn(store, tx, "a");
        assert.equal(again, "lost", "a second payment in the same transaction must be lost");
      });
      const before = await recordOf(store);
      assert.equal(before?.state, "done", "a completion that is lost must not undo the one before");
      const repeated = await completeAlone(harness, "a");
      assert.equal(repeated, "lost", "a transaction that is repeated after its commit must not pay again");
      await take(store, "a", { key: "completed without a transaction" });
      await store.complete("completed without a transaction", "a");
      const late = await completeAlone(harness, "a", "completed without a transaction");
      assert.equal(late, "lost", "a key that complete() has ended must not be paid again");
      assert.deepEqual(await recordOf(store), before, "a completion that is lost must change nothing");
    },
  },
  {
    name: "of two transactions of one owner at once only one completes the key",
    needs: ["transaction"],
    async check(harness) {
      const { store } = harness;
      await take(store, "a");
      const waiting: Promise<Outcome<string>>[] = [];
      await inTransaction(harness, async (tx) => {
        assertOk(await completeIn(store, tx, "a"), "the first completion must be ok");
        const second = outcomeOf<string>(() => completeAlone(harness, "a"));
        waiting.push(second);
        const early = await soon(second);
        assert.notEqual(early?.value, "ok", "the second transaction must not complete the key as well");
      });
      const [late] = await Promise.all(waiting);
      assert.notEqual(late?.value, "ok", "a transaction that waited must see what was committed");
      assert.equal(
        (await store.read(key))?.state,
        "done",
        "the first transaction must have completed the key",
      );
    },
  },
  {
    name: "completeIn is lost to an owner whose key an operator has resolved, so that its payment is rolled back",
    needs: ["transaction"],
    async check(harness) {
      const { store } = harness;
      const outcomes = ["done", "released"] as const;
      const keys = outcomes.flatMap((outcome) =>
        ["held", "expired"].map((state) => ({ outcome, state, ofKey: `${state}, then ${outcome}` })),
      );
      await inTurn(keys, ({ ofKey }) => take(store, "a", { key: ofKey, leaseMs: shortLeaseMs }));
      await pass(harness, shortLeaseMs);
      await inTurn(keys, async ({ ofKey, outcome, state }) => {
        if (state === "held") await store.hold(ofKey, "a", "the bank did not answer");
        assertOk(await decide(store, ofKey, outcome), "there must be something to decide");
        const before = await recordOf(store, ofKey);
        assert.equal(await completeAlone(harness, "a", ofKey), "lost", `the owner has lost it: ${ofKey}`);
        assert.deepEqual(await recordOf(store, ofKey), before, "what is lost must change nothing");
      });
    },
  },
  {
    name: "completeIn throws where no transaction is open any more, and changes nothing",
    needs: ["transaction"],
    async check(harness) {
      const { store } = harness;
      const ended: unknown[] = [];
      await inTransaction(harness, async (tx) => void ended.push(tx));
      await outcomeOf(() =>
        inTransaction(harness, async (tx) => {
          ended.push(tx);
          throw new Error("no such account");
        }),
      );
      assert.equal(ended.length, 2, "transaction() of the harness must run its work");
      await take(store, "a");
      const before = await recordOf(store);
      await inTurn(ended, async (tx) => {
        const { error } = await outcomeOf(() => completeIn(store, tx, "a"));
        assert.ok(error !== undefined, "completeIn must throw: done would commit without the payment");
        assert.deepEqual(await recordOf(store), before, "the run must be as it was");
      });
      const { status } = await store.claim(key, claimBy("b"));
      assert.equal(status, "in-flight", "the run must be as it was");
    },
  },
  {
    name: "completeIn throws a TypeError at what is no transaction at all, and changes nothing",
    needs: ["transaction"],
    async check({ store }) {
      await take(store, "a");
      const before = await recordOf(store);
      await inTurn([undefined, null, {}, "BEGIN", () => {}], async (tx) => {
        const { error } = await outcomeOf(() => completeIn(store, tx, "a"));
        assert.ok(error?.thrown instanceof TypeError, "it is the handler's mistake, no failure of the store");
        assert.deepEqual(await recordOf(store), before, "the run must be as it was");
      });
      assertOk(await store.complete(key, "a"), "the run must still be its owner's");
    },
  },
  {
    name: "completeIn after close throws",
    needs: ["transaction"],
    async check(harness) {
      const { store } = harness;
      await takeOneOfEach(store);
      await inTransaction(harness, async (tx) => {
        await store.close();
        const { error } = await outcomeOf(() => completeIn(store, tx, owner, "running"));
        assert.ok(error !== undefined, "completeIn must throw after close");
      });
    },
  },
];
