import assert from "node:assert/strict";
import { type Steps, answerOf } from "@countersign/idempotency/door";
import { key } from "../claims.ts";
import {
  type Handler,
  type PaymentCase,
  type Payments,
  claimOf,
  keyOf,
  pay,
  writtenBy,
} from "../payments.ts";
import { inTurn, outcomeOf } from "../waiting.ts";

const before = "before";
const after = "after";

/** Handlers after which the transaction cannot commit what they wrote. */
export const brokenCases: readonly PaymentCase[] = [
  {
    name: "an error that the handler swallowed is told, and what may be paid is not free to be paid again",
    needs: ["swallow"],
    async check(harness) {
      await assertBroken(harness, keyOf("a"), (tx) => harness.swallow?.(tx));
    },
  },
  {
    name: "a handler's own COMMIT or ROLLBACK is told, and what may be paid is not free to be paid again",
    async check(harness) {
      await inTurn(["COMMIT", "ROLLBACK"] as const, async (statement) => {
        await assertBroken(harness, keyOf("a", `${key} ${statement}`), (tx) => harness.end(tx, statement));
      });
    },
  },
  {
    name: "a handler's own COMMIT leaves no key done that no handler has seen",
    async check(harness) {
      const { idempotency, transactions } = harness.store;
      const { error } = await outcomeOf(() =>
        pay(
          harness,
          claimOf([keyOf("a", "first"), keyOf("a", "second")]),
          function* first(tx, keys): Steps<void> {
            yield* answerOf(harness.write(tx, "first"));
            yield* answerOf(harness.end(tx, "COMMIT"));
            yield* answerOf(transactions.keep(tx, keys.slice(0, 1), true));
          },
        ),
      );
      assertTold(error?.thrown);
      assert.notEqual(await idempotency.read("first"), undefined, "the key that was paid must not be free");
      const unseen = (await idempotency.read("second"))?.state;
      assert.notEqual(unseen, "done", "the key that no handler has seen must not be done");
    },
  },
];

/** The handler writes a row, breaks the transaction, writes another one if it can, and returns as if nothing had been. */
async function assertBroken(
  harness: Payments,
  one: ReturnType<typeof keyOf>,
  breakIt: (tx: unknown) => unknown,
): Promise<void> {
  const { idempotency, transactions } = harness.store;
  const ids = [before, after].map((when) => `${when} ${one.key}`);
  const handler: Handler = function* broken(tx): Steps<void> {
    const [first = "", second = ""] = ids;
    yield* answerOf(harness.write(tx, first));
    yield* answerOf(breakIt(tx));
    try {
      yield* answerOf(harness.write(tx, second));
    } catch {
      // As the engine likes: what counts is what stays.
    }
  };
  const { error } = await outcomeOf(() => pay(harness, claimOf([one], { nonce: undefined }), handler));
  assertTold(error?.thrown);
  assert.equal(transactions.faultOf(error?.thrown), undefined, "it must not be run again as a conflict");
  const record = await idempotency.read(one.key);
  const left = (await writtenBy(harness)).filter((id) => ids.includes(id));
  if (left.length > 0) assert.notEqual(record, undefined, `${String(left)} was written: the key is not free`);
  else assert.notEqual(record?.state, "done", "nothing was written: the key must not be done");
}

function assertTold(error: unknown): void {
  const { code }: { code?: unknown } = Object(error);
  assert.equal(code, "transaction-broken", "keep() must throw what the handler has hidden");
}
