import assert from "node:assert/strict";
import { type Steps, answerOf } from "@countersign/idempotency/internal";
import { key, take } from "../claims.ts";
import {
  type PaymentCase,
  begin,
  claimOf,
  doNothing,
  keyOf,
  pay,
  paymentRules,
  statusesOf,
  writtenBy,
} from "../payments.ts";
import { outcomeOf } from "../waiting.ts";

const reason = "nothing-written";
const inDoubt = { state: "held", reason } as const;

/** Which keys an operator has to look at, what a handler has changed, and what comes too late. */
export const holdCases: readonly PaymentCase[] = [
  ...paymentRules([], {
    async "hold leaves to an operator what its own token runs, and names it, also once more"(harness) {
      const { idempotency, transactions } = harness.store;
      const early = [keyOf("a", "one"), keyOf("a", "two")];
      await commitEarly(harness, claimOf(early));
      const asked = [...early, keyOf("a", "never begun")];
      assert.deepEqual(new Set(await transactions.hold(asked, "first")), new Set(["one", "two"]));
      assert.deepEqual(new Set(await transactions.hold(asked, reason)), new Set(["one", "two"]));
      for (const { key: ofKey, token } of early) {
        // oxlint-disable-next-line no-await-in-loop -- one key after the other
        const record = await idempotency.read(ofKey);
        assert.deepEqual(pick(record), inDoubt);
        assert.equal(record?.token, token);
        const fence = record?.fence ?? Number.NaN;
        // oxlint-disable-next-line no-await-in-loop -- as above
        assert.equal(await idempotency.resolve(ofKey, "released", { fence }), "ok", "an operator decides");
      }
      assert.equal(await idempotency.read("never begun"), undefined, "an absent key must stay absent");
      const again = await pay(harness, claimOf([keyOf("b", "one")]), function* nothing() {});
      assert.deepEqual(statusesOf(again), ["begun"]);
    },
    async "hold leaves a key done that its own token has done, and names it"(harness) {
      const { idempotency, transactions } = harness.store;
      const paid = keyOf("a");
      await pay(harness, claimOf([paid]));
      assert.deepEqual([...(await transactions.hold([paid], reason))], [key]);
      assert.equal((await idempotency.read(key))?.state, "done", "all that paid it has committed with it");
    },
    async "hold leaves another token's key, done or running, and a free one as they are"(harness) {
      const { idempotency, transactions } = harness.store;
      await pay(harness, claimOf([keyOf("a", "done")]));
      await take(idempotency, "a", { key: "running" });
      await begin(harness, claimOf([keyOf("b", "free")]), function* free(tx, keys): Steps<void> {
        yield* answerOf(transactions.free(tx, keys));
      });
      const asked = ["done", "running", "free"].map((ofKey) => keyOf("b", ofKey));
      assert.deepEqual([...(await transactions.hold(asked, reason))], []);
      const states = await Promise.all(
        ["done", "running", "free"].map(async (ofKey) => (await idempotency.read(ofKey))?.state),
      );
      assert.deepEqual(states, ["done", "running", undefined]);
    },
    async "hold in the transaction commits with it, and is rolled back with it"(harness) {
      const { idempotency, transactions } = harness.store;
      const failure = new Error("the handler failed");
      const holding = (token: string, ends: () => void) =>
        begin(harness, claimOf([keyOf(token)]), function* hold(tx, keys): Steps<void> {
          yield* answerOf(transactions.keep(tx, keys, false));
          const held = yield* answerOf(transactions.hold(keys, reason, tx));
          assert.deepEqual([...held], [key]);
          ends();
        });
      const { error } = await outcomeOf(() =>
        holding("a", () => {
          throw failure;
        }),
      );
      assert.equal(error?.thrown, failure);
      assert.equal(await idempotency.read(key), undefined, "a rollback must take it back");
      await holding("b", () => {});
      const record = await idempotency.read(key);
      assert.deepEqual(pick(record), inDoubt);
      assert.equal(record?.token, "b");
      assert.deepEqual(statusesOf(await pay(harness, claimOf([keyOf("c")]))), ["held"]);
    },
    async "written counts the changes of a handler alone, where the engine counts"(harness) {
      const { transactions } = harness.store;
      const countedBehind = async (id: string, writes: boolean): Promise<number | undefined> => {
        const counted: (number | undefined)[] = [];
        await begin(
          harness,
          claimOf([keyOf("a", id)], { nonce: undefined }),
          function* count(tx, keys): Steps<void> {
            transactions.openGate?.(tx);
            if (writes) yield* answerOf(harness.write(tx, id));
            counted.push(yield* answerOf(transactions.written?.(tx, keys)));
            yield* answerOf(transactions.keep(tx, keys, false));
          },
        );
        return counted[0];
      };
      const idle = await countedBehind("idle", false);
      const writing = await countedBehind("writing", true);
      if (idle === undefined && writing === undefined) return;
      assert.equal(idle, 0, "the store's own rows are not the handler's");
      assert.equal(writing, 1, "the handler has written one row");
    },
  }),
  ...paymentRules(["waiting"], {
    async "a statement behind closeGate is rejected and takes no effect, and openGate lets the next one through"(
      harness,
    ) {
      const { transactions } = harness.store;
      const keys = [keyOf("a", "one"), keyOf("a", "two")];
      const lates: unknown[] = [];
      const closed: unknown[] = [];
      await begin(harness, claimOf(keys), function* gated(tx): Steps<void> {
        for (const [index, one] of keys.entries()) {
          transactions.openGate?.(tx);
          yield* answerOf(harness.write(tx, one.key));
          closed.push((yield* answerOf(transactions.closeGate?.(tx, true)))?.unanswered);
          const late = outcomeOf(() => harness.write(tx, `late ${one.key}`));
          lates.push((yield* answerOf(late)).error);
          yield* answerOf(transactions.keep(tx, [one], index === 0));
        }
      });
      assert.deepEqual(closed, [0, 0], "each statement was answered when the gate was closed");
      for (const late of lates) assert.notEqual(late, undefined, "a late statement must be rejected");
      assert.deepEqual(await writtenBy(harness), ["one", "two"]);
    },
  }),
];

/** As a handler that commits what it has by then, and never comes to its end. */
const commitEarly: typeof pay = async (harness, claim, handler = doNothing) => begin(harness, claim, handler);

function pick(record: { readonly state?: unknown; readonly reason?: unknown } | undefined): unknown {
  return { state: record?.state, reason: record?.reason };
}
