import assert from "node:assert/strict";
import type { Awaitable, IdempotencyOwnership } from "@countersign/idempotency-guard";
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
import type { IdempotencyCase } from "../idempotency-contract.ts";
import { inTurn } from "../in-turn.ts";
import { assertLost, owner, stateKeys, takeOneOfEach } from "../states.ts";
import { type Outcome, anotherOf, outcomeOf, pass, pause } from "../waiting.ts";

type Harness = IdempotencyStoreHarness<unknown>;

// How long a step is given to go wrong while the transaction is open.
const overtakeMs = 100;

/** `complete` inside the transaction that pays. */
export const transactionCases: readonly IdempotencyCase[] = [
  {
    name: "completeIn makes the key done with the commit, and is ok again in it and after it",
    needs: ["transaction"],
    async check(harness) {
      const { store } = harness;
      const fence = await take(store, "a");
      await inTransaction(harness, async (tx) => {
        assertOk(await completeIn(store, tx, "a"), "the owner's completion must be ok");
        assertOk(await completeIn(store, tx, "a"), "a repeated completion must be ok");
      });
      const done = { state: "done", token: "a", fence, fingerprint: fingerprintOf("a") };
      assert.deepEqual(await recordOf(store), done, "the key must be done with the commit");
      await inTransaction(harness, async (tx) => {
        assertOk(await completeIn(store, tx, "a"), "a completion after the commit must be ok");
      });
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
      await inTransaction(harness, async (tx) => {
        assertOk(
          await completeIn(store, tx, owner, "held"),
          "the owner must be able to complete what it held",
        );
      });
      assert.equal((await store.read("held"))?.state, "done", "the held key must be done");
    },
  },
  {
    name: "completeIn by a stranger is lost in every state, and commits nothing",
    needs: ["transaction"],
    async check(harness) {
      const { store } = harness;
      await takeOneOfEach(store);
      await assertLost(store, stateKeys, async (ofKey) => {
        const answers: IdempotencyOwnership[] = [];
        await inTransaction(harness, async (tx) => {
          answers.push(await completeIn(store, tx, "stranger", ofKey));
        });
        return answers[0] ?? assert.fail("transaction() of the harness must run its work");
      });
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
      await inTransaction(harness, async (tx) => {
        assert.equal(await completeIn(store, tx, "a"), "lost", "the old owner must have lost the key");
      });
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
      const { store } = harness;
      const steps = Object.entries(overtakingSteps);
      await inTurn(steps, ([ofKey]) => take(store, "a", { key: ofKey, leaseMs: shortLeaseMs }));
      await pass(harness, shortLeaseMs);
      await inTurn(steps, async ([ofKey, step]) => {
        const waiting: Promise<Outcome<unknown>>[] = [];
        await inTransaction(harness, async (tx) => {
          assertOk(await completeIn(store, tx, "a", ofKey), "the owner's completion must be ok");
          const outcome = outcomeOf(() => step(store, ofKey));
          waiting.push(outcome);
          const early = await soon(outcome);
          assert.ok(
            early === undefined || early.error !== undefined,
            `${ofKey} must wait for the end of the transaction or fail, it was answered`,
          );
        });
        const [late] = await Promise.all(waiting);
        assert.ok(
          late?.error !== undefined || ["done", "lost", "not-held"].includes(answerOf(late?.value)),
          `${ofKey} must see what was committed while it waited`,
        );
        assert.equal((await recordOf(store, ofKey))?.state, "done", `${ofKey} must not undo the commit`);
      });
    },
  },
];

// The lease of the key has expired: without the transaction, each would succeed.
const overtakingSteps: Readonly<Record<string, (store: Store, ofKey: string) => Awaitable<unknown>>> = {
  "claim under rerun": (store, ofKey) => store.claim(ofKey, claimBy("b")),
  "claim under hold": (store, ofKey) => store.claim(ofKey, claimBy("b", { recovery: "hold" })),
  release: (store, ofKey) => store.release(ofKey, "a"),
  hold: (store, ofKey) => store.hold(ofKey, "a", "in doubt"),
  "resolve as released": (store, ofKey) => store.resolve(ofKey, "released"),
  "resolve as done": (store, ofKey) => store.resolve(ofKey, "done"),
};

async function inTransaction(harness: Harness, work: (tx: unknown) => Promise<void>): Promise<void> {
  if (harness.transaction === undefined) throw new Error("only cases that need transactions begin one");
  await harness.transaction(work);
}

async function completeIn(
  store: Store,
  tx: unknown,
  token: string,
  ofKey: string = key,
): Promise<IdempotencyOwnership> {
  if (store.completeIn === undefined) throw new Error("only cases that need transactions complete in one");
  return store.completeIn(tx, ofKey, token);
}

/** How the call ended, or undefined when it is still waiting a moment later. */
async function soon<T>(outcome: Promise<Outcome<T>>): Promise<Outcome<T> | undefined> {
  return Promise.race([outcome, pause(overtakeMs).then(() => undefined)]);
}

function answerOf(value: unknown): string {
  return typeof value === "object" && value !== null && "status" in value
    ? String(value.status)
    : String(value);
}
