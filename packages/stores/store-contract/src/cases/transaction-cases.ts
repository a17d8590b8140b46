import assert from "node:assert/strict";
import type { Awaitable } from "@countersign/idempotency";
import {
  type Store,
  assertOk,
  claimBy,
  fingerprintOf,
  key,
  recordOf,
  shortLeaseMs,
  take,
  takeAndExpire,
  takeOver,
} from "../claims.ts";
import type { IdempotencyStoreHarness } from "../harness.ts";
import type { IdempotencyCase } from "../contract.ts";
import { inTurn } from "../in-turn.ts";
import { assertLost, owner, stateKeys, takeOneOfEach } from "../states.ts";
import { completeAlone, completeIn, inTransaction, soon } from "../transactions.ts";
import { type Outcome, anotherOf, outcomeOf, pass } from "../waiting.ts";

type Harness = IdempotencyStoreHarness<unknown>;

/** `complete` inside the transaction that pays. */
export const transactionCases: readonly IdempotencyCase[] = [
  {
    name: "completeIn makes the key done with the commit",
    needs: ["transaction"],
    async check(harness) {
      const { store } = harness;
      const fence = await take(store, "a");
      assertOk(await completeAlone(harness, "a"), "the owner's completion must be ok");
      const done = { state: "done", token: "a", fence, fingerprint: fingerprintOf("a") };
      assert.deepEqual(await recordOf(store), done, "the key must be done with the commit");
      assertOk(await store.complete(key, "a"), "its owner must learn from complete that it is done");
    },
  },
  {
    name: "completeIn leaves the run when its transaction is rolled back",
    needs: ["transaction"],
    async check(harness) {
      const { store } = harness;
      await takeAndExpire(harness, "a");
      const before = await recordOf(store);
      const failure = new Error("no such account");
      const { error } = await outcomeOf(() =>
        inTransaction(harness, async (tx) => {
          assertOk(await completeIn(store, tx, "a"), "the owner's completion must be ok");
          throw failure;
        }),
      );
      assert.equal(error?.thrown, failure, "the harness must throw what its work threw");
      assert.deepEqual(await recordOf(store), before, "the run must be as it was");
      await takeOver(store, "b");
    },
  },
  {
    name: "completeIn by the owner ends a held key",
    needs: ["transaction"],
    async check(harness) {
      const { store } = harness;
      await takeOneOfEach(store);
      const answer = await completeAlone(harness, owner, "held");
      assertOk(answer, "the owner must be able to complete what it held");
      assert.equal((await store.read("held"))?.state, "done", "the held key must be done");
    },
  },
  {
    name: "completeIn by a stranger is lost in every state, and commits nothing",
    needs: ["transaction"],
    async check(harness) {
      const { store } = harness;
      await takeOneOfEach(store);
      await assertLost(store, stateKeys, (ofKey) => completeAlone(harness, "stranger", ofKey));
    },
  },
  {
    name: "completeIn is lost to an owner whose key was taken over, so that its payment is rolled back",
    needs: ["transaction"],
    async check(harness) {
      const { store } = harness;
      await takeAndExpire(harness, "a");
      await takeOver(store, "b");
      const before = await recordOf(store);
      assert.equal(await completeAlone(harness, "a"), "lost", "the old owner must have lost the key");
      assert.deepEqual(await recordOf(store), before, "the run of the new owner must stay");
    },
  },
  {
    name: "completeIn is seen by nobody else before the commit",
    needs: ["transaction", "another"],
    async check(harness) {
      const other = await anotherOf(harness);
      await take(harness.store, "a");
      await inTransaction(harness, async (tx) => {
        assertOk(await completeIn(harness.store, tx, "a"), "the owner's completion must be ok");
        const read = await soon(outcomeOf(() => other.read(key)));
        assert.notEqual(read?.value?.state, "done", "nothing must be read as done that has not committed");
        const claim = await soon(outcomeOf(() => other.claim(key, claimBy("b"))));
        assert.notEqual(claim?.value?.status, "done", "nothing must be done that has not committed");
      });
      const { status } = await other.claim(key, claimBy("b"));
      assert.equal(status, "done", "the key must be done to everybody after the commit");
    },
  },
  {
    name: "while a transaction that completes a key is open, no other step takes or settles the key",
    needs: ["transaction"],
    async check(harness) {
      await assertNoOvertaking(harness, async (ofKey, late) => {
        assert.ok(
          late.error !== undefined || ["done", "lost", "not-held"].includes(answerOf(late.value)),
          `${ofKey} must see what was committed while it waited`,
        );
        const record = await recordOf(harness.store, ofKey);
        assert.equal(record?.state, "done", `${ofKey} must not undo the commit`);
        assert.equal(record.token, "a", `${ofKey} must not take the key from who committed`);
      });
    },
  },
  {
    name: "a step that waited for a transaction which is rolled back finds the run as it was",
    needs: ["transaction"],
    async check(harness) {
      const failure = new Error("no such account");
      await assertNoOvertaking(
        harness,
        async (ofKey, late) => {
          assert.ok(
            late.error !== undefined || ["acquired", "held", "ok"].includes(answerOf(late.value)),
            `${ofKey} must find the run after the rollback, not ${answerOf(late.value)}`,
          );
          // What failed changed nothing, and can be tried again.
          if (late.error !== undefined) await takeOver(harness.store, "c", ofKey);
        },
        failure,
      );
    },
  },
];

type Overtaking = (store: Store, ofKey: string, fence: number) => Awaitable<unknown>;

// The lease of the key has expired: without the transaction, each would succeed.
const overtakingSteps: Readonly<Record<string, Overtaking>> = {
  "claim under rerun": (store, ofKey) => store.claim(ofKey, claimBy("b")),
  "claim under hold": (store, ofKey) => store.claim(ofKey, claimBy("b", { recovery: "hold" })),
  release: (store, ofKey) => store.release(ofKey, "a"),
  hold: (store, ofKey) => store.hold(ofKey, "a", "in doubt"),
  "resolve as released": (store, ofKey, fence) => store.resolve(ofKey, "released", { fence }),
  "resolve as done": (store, ofKey, fence) => store.resolve(ofKey, "done", { fence }),
};

/** Each step comes while a transaction that completes its key is open, which then commits, or is rolled back by `failure`. */
async function assertNoOvertaking(
  harness: Harness,
  assertLate: (ofKey: string, late: Outcome<unknown>) => Promise<void>,
  failure?: Error,
): Promise<void> {
  const { store } = harness;
  const steps = Object.entries(overtakingSteps);
  const fences = new Map<string, number>();
  await inTurn(steps, async ([ofKey]) => {
    fences.set(ofKey, await take(store, "a", { key: ofKey, leaseMs: shortLeaseMs }));
  });
  await pass(harness, shortLeaseMs);
  await inTurn(steps, async ([ofKey, step]) => {
    const waiting: Promise<Outcome<unknown>>[] = [];
    const transaction = await outcomeOf(() =>
      inTransaction(harness, async (tx) => {
        assertOk(await completeIn(store, tx, "a", ofKey), "the owner's completion must be ok");
        const outcome = outcomeOf(() => step(store, ofKey, fences.get(ofKey) ?? 0));
        waiting.push(outcome);
        const early = await soon(outcome);
        assert.ok(
          early === undefined || early.error !== undefined,
          `${ofKey} must wait for the end of the transaction or fail, it was answered`,
        );
        if (failure !== undefined) throw failure;
      }),
    );
    const [late] = await Promise.all(waiting);
    if (transaction.error !== undefined && transaction.error.thrown !== failure) {
      throw transaction.error.thrown;
    }
    await assertLate(ofKey, late ?? assert.fail("transaction() of the harness must run its work"));
  });
}

function answerOf(value: unknown): string {
  return typeof value === "object" && value !== null && "status" in value
    ? String(value.status)
    : String(value);
}
