import assert from "node:assert/strict";
import type { TransactionBegun, TransactionClaim, TransactionKey } from "@countersign/idempotency";
import { type Steps, answerOf } from "@countersign/idempotency/internal";
import {
  assertOk,
  claimBy,
  fingerprintOf,
  keptOf,
  key,
  longLeaseMs,
  recordOf,
  shortLeaseMs,
  take,
} from "../claims.ts";
import {
  type PaymentCase,
  type Payments,
  begin,
  claimOf,
  doNothing,
  isUsed,
  keyOf,
  nonceOf,
  pay,
  paymentRules,
  refuse,
  sorted,
  statusesOf,
  writtenBy,
} from "../payments.ts";
import { inTurn, needed, outcomeOf, pass } from "../waiting.ts";

const later = "later";

/** begin() in the states of a key, and what holds for everybody else then. */
export const beginCases: readonly PaymentCase[] = [
  ...paymentRules([], {
    async "a key that was begun is done for everybody once its transaction commits, and its nonce is used"(
      harness,
    ) {
      const { idempotency, transactions } = harness.store;
      const claim = claimOf([keyOf("a")]);
      assert.deepEqual(
        await pay(harness, claim),
        { nonce: "fresh", keys: [{ status: "begun" }] },
        "an absent key must be begun",
      );
      assert.deepEqual(await writtenBy(harness), [key], "what the handler wrote must have committed");
      const { state, token, fingerprint } = (await idempotency.read(key)) ?? {};
      assert.deepEqual({ state, token, fingerprint }, { state: "done", ...pick(keyOf("a")) });
      const answer = { status: "done", fingerprint: fingerprintOf("a") };
      assert.deepEqual(await idempotency.claim(key, claimBy(later)), answer, "done for lease mode");
      const begun = await pay(harness, claimOf([keyOf(later)]));
      assert.deepEqual(begun, { nonce: "fresh", keys: [answer] }, "done for another transaction");
      const again = await pay(harness, claimOf([keyOf("a")], { nonce: undefined }));
      assert.deepEqual(again.keys, [answer], "done for the token that has paid it, too");
      assert.ok(await isUsed(harness, claim), "the nonce must have committed with the key");
      assert.ok(transactions.retentionMs > 0);
    },
    async "a transaction that fails leaves no key, no nonce and no row, and rejects with its own error"(
      harness,
    ) {
      const claim = claimOf([keyOf("a")]);
      const failure = new Error("the handler failed");
      const { error } = await outcomeOf(() =>
        pay(harness, claim, function* fail(tx, keys): Steps<void> {
          yield harness.write(tx, keys[0]?.key ?? "");
          throw failure;
        }),
      );
      assert.equal(error?.thrown, failure, "run() must reject with the error of its work");
      assert.deepEqual(await writtenBy(harness), [], "no row must stay");
      assert.equal(await harness.store.idempotency.read(key), undefined, "the key must be as it was");
      assert.equal(await isUsed(harness, claim), false, "the nonce must be as it was");
    },
    async "a nonce that was used before is seen, and its claim touches no key"(harness) {
      const { nonces, idempotency } = harness.store;
      await nonces.claim(nonceOf("alone"));
      await pay(harness, claimOf([keyOf("a", "another key")], { nonce: nonceOf("in a transaction") }));
      await inTurn(["alone", "in a transaction"], async (used) => {
        const begun = await pay(harness, claimOf([keyOf("b")], { nonce: nonceOf(used) }));
        assert.deepEqual(begun, { nonce: "seen", keys: [] }, `the nonce was used ${used}`);
      });
      assert.equal(await idempotency.read(key), undefined, "no key must be touched");
    },
    async "a key that is done, running or held is answered as it stays, and the nonce is used"(harness) {
      const { idempotency } = harness.store;
      const keys = ["done", "running", "held"];
      await inTurn(keys, (ofKey) => take(idempotency, "owner", { key: ofKey }));
      assertOk(await idempotency.complete("done", "owner"), "an owner must be able to complete");
      assertOk(await idempotency.hold("held", "owner", "in doubt"), "an owner must be able to hold");
      const before = await Promise.all(keys.map((ofKey) => recordOf(idempotency, ofKey)));
      const claim = claimOf(keys.map((ofKey) => keyOf(later, ofKey)));
      const { keys: answers } = await pay(harness, claim);
      const fingerprint = fingerprintOf("owner");
      const [done, running, held] = answers;
      assert.deepEqual(done, { status: "done", fingerprint });
      assert.deepEqual(held, { status: "held", fingerprint, reason: "in doubt" });
      const { remainingMs, ...run } =
        running?.status === "in-flight" ? running : assert.fail("the running key must be in flight");
      assert.deepEqual(run, { status: "in-flight", fingerprint });
      assert.ok(remainingMs > 0 && remainingMs <= longLeaseMs, "the rest of the lease must be told");
      const after = await Promise.all(keys.map((ofKey) => recordOf(idempotency, ofKey)));
      assert.deepEqual(after, before, "what is answered must stay as it is");
      assert.ok(await isUsed(harness, claim), "the nonce must have committed without a key");
    },
    async "a run whose lease has ended is held under recovery hold"(harness) {
      const { idempotency } = harness.store;
      await take(idempotency, "owner", { leaseMs: shortLeaseMs });
      await pass(harness, shortLeaseMs);
      const reason = "lease-expired";
      const { keys } = await pay(harness, claimOf([keyOf(later)], { recovery: "hold" }));
      assert.deepEqual(keys, [{ status: "held", fingerprint: fingerprintOf("owner"), reason }]);
      const record = await idempotency.read(key);
      assert.equal(record?.state, "held", "the key must be held for everybody");
      assert.equal(record.token, "owner", "the key must stay the old owner's");
    },
    async "what commits before keep is running for everybody, and is held once its lease has ended, also under rerun"(
      harness,
    ) {
      const { idempotency } = harness.store;
      await begin(harness, claimOf([keyOf("early")], { leaseMs: shortLeaseMs }), doNothing);
      assert.equal((await idempotency.read(key))?.state, "running", "a key is done by keep() alone");
      await pass(harness, shortLeaseMs);
      const reason = "lease-expired";
      const held = { status: "held", fingerprint: fingerprintOf("early"), reason };
      assert.deepEqual((await pay(harness, claimOf([keyOf(later)]))).keys, [held]);
      assert.deepEqual(await idempotency.claim(key, claimBy(later)), held);
    },
    async "what commits before keep is held for lease mode too, also under rerun"(harness) {
      const { idempotency } = harness.store;
      await begin(harness, claimOf([keyOf("early")], { leaseMs: shortLeaseMs }), doNothing);
      await pass(harness, shortLeaseMs);
      const held = { status: "held", fingerprint: fingerprintOf("early"), reason: "lease-expired" };
      assert.deepEqual(await idempotency.claim(key, claimBy(later)), held);
    },
    async "an owner that said hold leaves its expired run to an operator, also under recovery rerun"(
      harness,
    ) {
      const { idempotency } = harness.store;
      await take(idempotency, "owner", { leaseMs: shortLeaseMs, recovery: "hold" });
      await pass(harness, shortLeaseMs);
      const held = { status: "held", fingerprint: fingerprintOf("owner"), reason: "lease-expired" };
      assert.deepEqual((await pay(harness, claimOf([keyOf(later)]))).keys, [held]);
    },
    async "keep rejects for a key that its token does not run any more, and leaves it to an operator"(
      harness,
    ) {
      const { idempotency, transactions } = harness.store;
      const { error } = await outcomeOf(() =>
        begin(harness, claimOf([keyOf("a")]), function* undo(tx, keys): Steps<void> {
          yield* answerOf(transactions.free(tx, keys));
          yield* answerOf(transactions.keep(tx, keys, false));
        }),
      );
      const { code }: { code?: unknown } = Object(error?.thrown);
      assert.equal(code, "transaction-broken");
      assert.equal((await idempotency.read(key))?.state, "held");
    },
    async "a run whose lease has ended is taken over under recovery rerun, and its old owner is lost"(
      harness,
    ) {
      const { idempotency } = harness.store;
      const fence = await take(idempotency, "owner", { leaseMs: shortLeaseMs });
      await pass(harness, shortLeaseMs);
      assert.deepEqual(statusesOf(await pay(harness, claimOf([keyOf(later)]))), ["begun"]);
      const record = await idempotency.read(key);
      assert.equal(record?.token, later);
      assert.ok(record.fence > fence, "the fence must be above the old owner's");
      assert.equal(await idempotency.complete(key, "owner"), "lost", "the old owner must find it lost");
    },
    async "a key that was released begins, with a higher fence"(harness) {
      const { idempotency } = harness.store;
      const fence = await take(idempotency, "owner");
      assertOk(await idempotency.release(key, "owner"), "an owner must be able to release");
      assert.deepEqual(statusesOf(await pay(harness, claimOf([keyOf(later)]))), ["begun"]);
      const record = await idempotency.read(key);
      assert.ok(record !== undefined && record.fence > fence, "the fence must be above the one before");
    },
    async "of several keys each is answered for itself, in the order of the claim"(harness) {
      await pay(harness, claimOf([keyOf("a", "m")]));
      const keys = ["z", "a", "m"].map((ofKey) => keyOf("b", ofKey));
      assert.deepEqual(statusesOf(await pay(harness, claimOf(keys))), ["begun", "begun", "done"]);
      assert.deepEqual(await writtenBy(harness), ["a", "m", "z"]);
    },
    async "of payments of one key at once a single one is made"(harness) {
      const payments = await payAtOnce(harness, (token) => claimOf([keyOf(token)]));
      const statuses = payments.map((begun) => String(statusesOf(begun)));
      assert.deepEqual(sorted(statuses), ["begun", ...Array.from({ length: 7 }, () => "done")]);
      assert.deepEqual(await writtenBy(harness), [key]);
    },
    async "of payments with one nonce at once a single one is made"(harness) {
      const payments = await payAtOnce(harness, (token) =>
        claimOf([keyOf(token, token)], { nonce: nonceOf("replayed") }),
      );
      assert.equal(payments.filter(({ nonce }) => nonce === "fresh").length, 1);
      assert.equal((await writtenBy(harness)).length, 1);
    },
  }),
  ...paymentRules(["clock"], {
    async "a key is done for the retention and begins again after it, pruned or not"(harness) {
      const { transactions, idempotency } = harness.store;
      const late = { nonce: undefined };
      await pay(harness, claimOf([keyOf("a"), keyOf("a", "pruned")], late));
      await harness.advance?.(transactions.retentionMs - 1);
      const again = claimOf([keyOf("b"), keyOf("b", "pruned")], late);
      await idempotency.prune();
      assert.deepEqual(statusesOf(await pay(harness, again, doNothing)), ["done", "done"]);
      await harness.advance?.(1);
      assert.deepEqual(statusesOf(await pay(harness, claimOf([keyOf("c")], late), doNothing)), ["begun"]);
      const before = await idempotency.read(key);
      await idempotency.prune();
      assert.deepEqual(await idempotency.read(key), before, "pruning must leave what is done anew");
      const pruned = await pay(harness, claimOf([keyOf("c", "pruned")], late), doNothing);
      assert.deepEqual(statusesOf(pruned), ["begun"]);
    },
    async "an operator's decision stays with the key, begun, freed or rolled back, until the retention ends"(
      harness,
    ) {
      const { transactions, idempotency } = harness.store;
      const fence = await take(idempotency, "owner");
      assertOk(await idempotency.hold(key, "owner", "in doubt"), "an owner must be able to hold");
      assertOk(await idempotency.resolve(key, "released", { fence, by: "anna" }), "a held key is decided");
      const decision = await keptOf(idempotency, key);
      await refuse(harness, claimOf([keyOf("a")]));
      assert.deepEqual(await keptOf(idempotency, key), decision, "a rollback must keep the decision");
      await begin(harness, claimOf([keyOf("f")]), function* free(tx, keys): Steps<void> {
        yield* answerOf(transactions.free(tx, keys));
      });
      assert.deepEqual(await keptOf(idempotency, key), decision, "free must keep the decision");
      assert.deepEqual(statusesOf(await pay(harness, claimOf([keyOf("b")]))), ["begun"]);
      assert.deepEqual(await keptOf(idempotency, key), decision, "begin must keep the decision");
      await harness.advance?.(transactions.retentionMs);
      await pay(harness, claimOf([keyOf("c")]), doNothing);
      const record = await recordOf(idempotency);
      assert.equal(record?.token, "c");
      assert.equal(record.decision, undefined, "the decision ends with what it was about");
    },
  }),
  ...paymentRules(["list"], {
    async "operators find a key that was begun among the done ones, and can decide nothing about it"(
      harness,
    ) {
      const { idempotency } = harness.store;
      await pay(harness, claimOf([keyOf("a")]));
      const { entries: records } = needed(await idempotency.list?.({ state: "done", limit: 10 }));
      assert.deepEqual(
        records.map(({ key: ofKey, record }) => [ofKey, record.token]),
        [[key, "a"]],
      );
      const fence = records[0]?.record.fence ?? 0;
      assert.equal(await idempotency.resolve(key, "released", { fence }), "not-held");
      assert.equal(await idempotency.reopen(key, { fence }), "not-decided");
      await idempotency.prune();
      assert.equal((await idempotency.claim(key, claimBy(later))).status, "done");
    },
  }),
];

function pick({ token, fingerprint }: TransactionKey) {
  return { token, fingerprint };
}

/** Eight payments side by side. A conflict is begun again, as the contract of faultOf() has it. */
async function payAtOnce(
  harness: Payments,
  claim: (token: string) => TransactionClaim,
): Promise<readonly TransactionBegun[]> {
  const tokens = Array.from({ length: 8 }, (_none, index) => `token-${index}`);
  return Promise.all(
    tokens.map(async (token) => {
      for (;;) {
        // oxlint-disable-next-line no-await-in-loop -- one attempt after the other
        const { value, error } = await outcomeOf(() => pay(harness, claim(token)));
        if (value !== undefined) return value;
        if (harness.store.transactions.faultOf(error?.thrown) !== "conflict") throw error?.thrown;
      }
    }),
  );
}
