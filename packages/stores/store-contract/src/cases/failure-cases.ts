import assert from "node:assert/strict";
import type { TransactionBegun } from "@countersign/idempotency";
import { type Steps, answerOf } from "@countersign/idempotency/internal";
import { claimBy, fenceOf, key } from "../claims.ts";
import {
  type Handler,
  type PaymentCase,
  type Payments,
  begin,
  claimOf,
  inTransaction,
  isUsed,
  keyOf,
  nonceOf,
  pay,
  paymentRules,
  refuse,
  statusesOf,
  writtenBy,
} from "../payments.ts";
import { inTurn, outcomeOf } from "../waiting.ts";

/** What a handler that fails leaves, what is given back, and what an error means. */
export const failureCases = paymentRules([], {
  async "a handler that fails leaves nothing and a free key, for both modes; its nonce can be claimed after"(
    harness,
  ) {
    const { idempotency } = harness.store;
    const claim = claimOf([keyOf("a")]);
    assert.deepEqual(statusesOf(await refuse(harness, claim)), ["begun"]);
    assert.deepEqual(await writtenBy(harness), [], "what the handler wrote must be taken back");
    assert.equal(await idempotency.read(key), undefined, "the key must be free");
    assert.ok(await isUsed(harness, claim), "the nonce that was claimed after it must stay used");
    fenceOf(await idempotency.claim(key, claimBy("b")), "a key of a rolled back handler must be acquired");
    await idempotency.release(key, "b");
    assert.deepEqual(statusesOf(await pay(harness, claimOf([keyOf("c")]))), ["begun"]);
  },
  async "of several keys each is kept or freed by itself, for both modes; the nonce stays used"(harness) {
    const { idempotency, transactions } = harness.store;
    const steps = ["keep", "free", "free", "keep", "free"] as const;
    const keys = steps.map((step, index) => keyOf("a", `${index} ${step}`));
    const claim = claimOf(keys);
    await begin(harness, claim, function* each(tx): Steps<void> {
      for (const [index, one] of keys.entries()) {
        if (steps[index] === "free") {
          yield* answerOf(transactions.free(tx, [one]));
        } else {
          yield* answerOf(harness.write(tx, one.key));
          yield* answerOf(transactions.keep(tx, [one], index < keys.length - 1));
        }
      }
    });
    assert.deepEqual(await writtenBy(harness), ["0 keep", "3 keep"]);
    const statesOf = async (): Promise<readonly string[]> =>
      Promise.all(keys.map(async (one) => (await idempotency.read(one.key))?.state ?? "free"));
    assert.deepEqual(await statesOf(), ["done", "free", "free", "done", "free"]);
    assert.ok(await isUsed(harness, claim), "the nonce must stay used");
    const freed = keys[1]?.key ?? "";
    fenceOf(await idempotency.claim(freed, claimBy("b")), "a key that was freed must be acquired");
    const again = await pay(harness, claimOf([keyOf("c", keys[2]?.key)]));
    assert.deepEqual(statusesOf(again), ["begun"], "a key that was freed must begin");
  },
  async "without keys begin sets a savepoint, which keep ends and assertOpen finds"(harness) {
    const { transactions } = harness.store;
    const claim = claimOf([], { nonce: nonceOf("without keys") });
    const begun = await inTransaction(harness.store, function* work(tx): Steps<TransactionBegun> {
      yield* answerOf(harness.write(tx, "before"));
      const answer = yield* answerOf(transactions.begin(tx, claim));
      yield* answerOf(harness.write(tx, "kept"));
      yield* answerOf(transactions.keep(tx, [], false));
      return answer;
    });
    assert.deepEqual(begun, { nonce: "fresh", keys: [] });
    assert.deepEqual(await writtenBy(harness), ["before", "kept"]);
    assert.ok(await isUsed(harness, claim), "the nonce must have committed");
    const failure = new Error("the handler failed");
    const { error } = await outcomeOf(() =>
      inTransaction(harness.store, function* work(tx): Steps<void> {
        yield* answerOf(transactions.begin(tx, claimOf([], { nonce: nonceOf("without a result") })));
        yield* answerOf(harness.write(tx, "undone"));
        yield* answerOf(transactions.assertOpen(tx, []));
        throw failure;
      }),
    );
    assert.equal(error?.thrown, failure, "a transaction that is open must not be told as broken");
    assert.deepEqual(await writtenBy(harness), ["before", "kept"]);
  },
  async "free leaves the keys that were answered, and those of others, as they are"(harness) {
    const { idempotency, transactions } = harness.store;
    await pay(harness, claimOf([keyOf("a", "paid")]));
    const claim = claimOf([keyOf("b"), keyOf("b", "paid"), keyOf("b", "kept")]);
    await begin(harness, claim, function* free(tx, keys): Steps<void> {
      assert.deepEqual(
        keys.map((one) => one.key),
        [key, "kept"],
      );
      yield* answerOf(transactions.free(tx, keys.slice(0, 1)));
      yield* answerOf(harness.write(tx, "kept"));
      yield* answerOf(transactions.keep(tx, keys.slice(1), false));
    });
    assert.equal((await idempotency.read("paid"))?.token, "a");
    assert.equal(await idempotency.read(key), undefined);
    assert.equal((await idempotency.read("kept"))?.state, "done");
    assert.deepEqual(await writtenBy(harness), ["kept", "paid"]);
  },
  async "a transaction that fails behind free leaves the keys as they were"(harness) {
    const { idempotency, transactions } = harness.store;
    const failure = new Error("the handler failed");
    const { error } = await outcomeOf(() =>
      begin(harness, claimOf([keyOf("a")]), function* free(tx, keys): Steps<void> {
        yield* answerOf(transactions.free(tx, keys));
        throw failure;
      }),
    );
    assert.equal(error?.thrown, failure);
    assert.equal(await idempotency.read(key), undefined);
    assert.deepEqual(statusesOf(await pay(harness, claimOf([keyOf("b")]))), ["begun"]);
  },
  async "a statement that the engine refuses is a fault named refused, and its handler can fail"(harness) {
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
});

const before = "before";

const after = "after";

/** Handlers after which the transaction cannot commit what they wrote. */
export const brokenCases: readonly PaymentCase[] = [
  ...paymentRules(["swallow"], {
    async "an error that the handler swallowed is told, and what may be paid is not free to be paid again"(
      harness,
    ) {
      await assertBroken(harness, keyOf("a"), { breakIt: (tx) => harness.swallow?.(tx) });
    },
    async "what a handler commits after an error that it swallowed is not free to be paid again"(harness) {
      await assertCommitted(harness, "error", (tx) => harness.swallow?.(tx));
    },
  }),
  ...paymentRules([], {
    async "a handler's own COMMIT or ROLLBACK is told, and what may be paid is not free to be paid again"(
      harness,
    ) {
      await inTurn(["COMMIT", "ROLLBACK"] as const, async (statement) => {
        await inTurn(Object.entries({ pay, refuse }), async ([name, by]) => {
          await assertBroken(harness, keyOf("a", `${key} ${statement} ${name}`), {
            breakIt: (tx) => harness.end(tx, statement),
            by,
          });
        });
      });
    },
    async "a handler's own COMMIT is told without keys, too"(harness) {
      const { store } = harness;
      await inTurn(["keep", "assertOpen"] as const, async (step) => {
        const { error } = await outcomeOf(() =>
          inTransaction(store, function* work(tx): Steps<void> {
            yield* answerOf(store.transactions.begin(tx, claimOf([], { nonce: undefined })));
            yield* answerOf(harness.end(tx, "COMMIT"));
            yield* answerOf(store.transactions[step](tx, [], false));
          }),
        );
        assertTold(error?.thrown);
      });
    },
    async "what a handler commits after its own COMMIT or ROLLBACK is not free to be paid again"(harness) {
      await inTurn(["COMMIT", "ROLLBACK"] as const, async (statement) => {
        await assertCommitted(harness, statement, (tx) => harness.end(tx, statement));
      });
    },
    async "a handler's own COMMIT leaves a key free that no handler has seen"(harness) {
      const { idempotency, transactions } = harness.store;
      await inTurn(["keep", "assertOpen"] as const, async (step) => {
        const [seen, unseen] = [`seen ${step}`, `unseen ${step}`];
        const { error } = await outcomeOf(() =>
          pay(
            harness,
            claimOf([keyOf("a", seen), keyOf("a", unseen)], { nonce: undefined }),
            function* first(tx, keys): Steps<void> {
              yield* answerOf(harness.write(tx, seen));
              yield* answerOf(harness.end(tx, "COMMIT"));
              yield* answerOf(transactions[step](tx, keys.slice(0, 1), true));
            },
          ),
        );
        assertTold(error?.thrown);
        assert.notEqual(await idempotency.read(seen), undefined, "the key that was paid must not be free");
        const record = await idempotency.read(unseen);
        assert.equal(record, undefined, "the key that no handler has seen must be free");
      });
    },
  }),
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

/** The same with a COMMIT behind the last row, before keep() and before assertOpen(). */
async function assertCommitted(
  harness: Payments,
  how: string,
  breakIt: (tx: unknown) => unknown,
): Promise<void> {
  const last = (tx: unknown): unknown => harness.end(tx, "COMMIT");
  await inTurn(Object.entries({ pay, refuse }), ([name, by]) =>
    assertBroken(harness, keyOf("a", `${key} ${how} ${name}`), { breakIt, last, by }),
  );
}

function assertTold(error: unknown): void {
  const { code }: { code?: unknown } = Object(error);
  assert.equal(code, "transaction-broken", "keep() or assertOpen() must throw what the handler has hidden");
}
