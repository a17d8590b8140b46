import assert from "node:assert/strict";
import type { Awaitable } from "@countersign/idempotency";
import { type Store, assertOk, claimBy, key, recordOf, shortLeaseMs, take } from "../claims.ts";
import type { IdempotencyStoreHarness } from "../harness.ts";
import { type IdempotencyCase, idempotencyRules } from "../contract.ts";
import { completeAlone, completeIn, soon } from "../transactions.ts";
import { type Outcome, inTurn, needed, outcomeOf, pass } from "../waiting.ts";

type Harness = IdempotencyStoreHarness<unknown>;

export const transactionCases: readonly IdempotencyCase[] = [
  ...idempotencyRules(["transaction", "another"], {
    async "completeIn is seen by nobody else before the commit"(harness) {
      const other = needed(await harness.another?.());
      await take(harness.store, "a");
      await harness.transaction?.(async (tx) => {
        assertOk(await completeIn(harness.store, tx, "a"), "the owner's completion must be ok");
        const read = await soon(outcomeOf(() => other.read(key)));
        assert.notEqual(read?.value?.state, "done", "nothing must be read as done that has not committed");
        const claim = await soon(outcomeOf(() => other.claim(key, claimBy("b"))));
        assert.notEqual(claim?.value?.status, "done", "nothing must be done that has not committed");
      });
      const { status } = await other.claim(key, claimBy("b"));
      assert.equal(status, "done", "the key must be done to everybody after the commit");
    },
  }),
  ...idempotencyRules(["transaction"], {
    async "while a transaction that completes a key is open, no other step takes or settles the key"(
      harness,
    ) {
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
    async "a step that waited for a transaction which is rolled back finds the run as it was"(harness) {
      const failure = new Error("no such account");
      await assertNoOvertaking(
        harness,
        async (ofKey, late) => {
          assert.ok(
            late.error !== undefined || ["acquired", "held", "ok"].includes(answerOf(late.value)),
            `${ofKey} must find the run after the rollback, not ${answerOf(late.value)}`,
          );
          // What failed changed nothing, and can be tried again.
          if (late.error === undefined) return;
          const { status } = await harness.store.claim(ofKey, claimBy("c"));
          assert.equal(status, "acquired", "under rerun an expired run must be acquired");
        },
        failure,
      );
    },
    async "of two transactions of one owner at once only one completes the key"(harness) {
      const { store } = harness;
      await take(store, "a");
      const waiting: Promise<Outcome<string>>[] = [];
      await harness.transaction?.(async (tx) => {
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
    async "completeIn throws where no transaction is open any more, and changes nothing"(harness) {
      const { store } = harness;
      const ended: unknown[] = [];
      await harness.transaction?.(async (tx) => void ended.push(tx));
      await outcomeOf(() =>
        harness.transaction?.(async (tx) => {
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
    async "completeIn throws a TypeError at what is no transaction at all, and changes nothing"({ store }) {
      await take(store, "a");
      const before = await recordOf(store);
      await inTurn([undefined, null, {}, "BEGIN", () => {}], async (tx) => {
        const { error } = await outcomeOf(() => completeIn(store, tx, "a"));
        assert.ok(error?.thrown instanceof TypeError, "it is the handler's mistake, no failure of the store");
        assert.deepEqual(await recordOf(store), before, "the run must be as it was");
      });
      assertOk(await store.complete(key, "a"), "the run must still be its owner's");
    },
    async "completeIn after close throws"(harness) {
      const { store } = harness;
      await take(store, "a");
      await harness.transaction?.(async (tx) => {
        await store.close();
        const { error } = await outcomeOf(() => completeIn(store, tx, "a"));
        assert.ok(error !== undefined, "completeIn must throw after close");
      });
    },
  }),
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
      harness.transaction?.(async (tx) => {
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
