import assert from "node:assert/strict";
import { type Steps, answerOf } from "@countersign/idempotency/door";
import { key } from "../claims.ts";
import {
  type Handler,
  type PaymentCase,
  type Payments,
  claimOf,
  inTransaction,
  keyOf,
  pay,
  refuse,
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
      await assertBroken(harness, keyOf("a"), { breakIt: (tx) => harness.swallow?.(tx) });
    },
  },
  {
    name: "a handler's own COMMIT or ROLLBACK is told, and what may be paid is not free to be paid again",
    async check(harness) {
      await inTurn(["COMMIT", "ROLLBACK"] as const, async (statement) => {
        await assertBroken(harness, keyOf("a", `${key} ${statement}`), {
          breakIt: (tx) => harness.end(tx, statement),
        });
      });
    },
  },
  {
    name: "a handler's own COMMIT is told without keys, too",
    async check(harness) {
      const { store } = harness;
      const { error } = await outcomeOf(() =>
        inTransaction(store, function* work(tx): Steps<void> {
          yield* answerOf(store.transactions.begin(tx, claimOf([], { nonce: undefined })));
          yield* answerOf(harness.end(tx, "COMMIT"));
          yield* answerOf(store.transactions.keep(tx, [], false));
        }),
      );
      assertTold(error?.thrown);
    },
  },
  {
    name: "what a handler commits after its own COMMIT or ROLLBACK is not free to be paid again",
    async check(harness) {
      await inTurn(["COMMIT", "ROLLBACK"] as const, async (statement) => {
        await assertCommitted(harness, statement, (tx) => harness.end(tx, statement));
      });
    },
  },
  {
    name: "what a handler commits after an error that it swallowed is not free to be paid again",
    needs: ["swallow"],
    async check(harness) {
      await assertCommitted(harness, "error", (tx) => harness.swallow?.(tx));
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

interface Breaking {
  readonly breakIt: (tx: unknown) => unknown;
  /** Behind what it writes last. */
  readonly last?: (tx: unknown) => unknown;
  /** How the request ends. Default: keep(). */
  readonly by?: typeof pay;
}

/** The handler writes a row, breaks the transaction, writes another one and ends it if it can, and returns as if nothing had been. */
async function assertBroken(
  harness: Payments,
  one: ReturnType<typeof keyOf>,
  { breakIt, last = () => undefined, by = pay }: Breaking,
): Promise<void> {
  const { idempotency, transactions } = harness.store;
  const ids = [before, after].map((when) => `${when} ${one.key}`);
  const handler: Handler = function* broken(tx): Steps<void> {
    const [first = "", second = ""] = ids;
    yield* answerOf(harness.write(tx, first));
    yield* answerOf(breakIt(tx));
    for (const step of [() => harness.write(tx, second), () => last(tx)]) {
      try {
        yield* answerOf(step());
      } catch {
        // As the engine likes: what counts is what stays. An engine that refuses the row may still take the COMMIT.
      }
    }
  };
  const { error } = await outcomeOf(() => by(harness, claimOf([one], { nonce: undefined }), handler));
  assertTold(error?.thrown);
  assert.equal(transactions.faultOf(error?.thrown), undefined, "it must not be run again as a conflict");
  const record = await idempotency.read(one.key);
  const left = (await writtenBy(harness)).filter((id) => ids.includes(id));
  if (left.length > 0) assert.notEqual(record, undefined, `${String(left)} was written: the key is not free`);
  else assert.notEqual(record?.state, "done", "nothing was written: the key must not be done");
}

/** The same with a COMMIT behind the last row, before keep() and before undo(). */
async function assertCommitted(
  harness: Payments,
  how: string,
  breakIt: (tx: unknown) => unknown,
): Promise<void> {
  const last = (tx: unknown): unknown => harness.end(tx, "COMMIT");
  await inTurn([pay, refuse], (by) =>
    assertBroken(harness, keyOf("a", `${key} ${how} ${by.name}`), { breakIt, last, by }),
  );
}

function assertTold(error: unknown): void {
  const { code }: { code?: unknown } = Object(error);
  assert.equal(code, "transaction-broken", "keep() or undo() must throw what the handler has hidden");
}
