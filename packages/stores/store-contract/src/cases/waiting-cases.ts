import assert from "node:assert/strict";
import type { Awaitable, TransactionBegun, TransactionClaim } from "@countersign/idempotency";
import { type Steps, answerOf } from "@countersign/idempotency/internal";
import {
  type PaymentCase,
  type Payments,
  begin,
  claimOf,
  isUsed,
  keyOf,
  nonceOf,
  pay,
  paymentRules,
  statusesOf,
  writtenBy,
} from "../payments.ts";
import { type Store, claimBy, key, recordOf, shortLeaseMs, take } from "../claims.ts";
import { type Outcome, inTurn, openUntilEnded, outcomeOf, pass, soon } from "../waiting.ts";

const seenOrNot = [
  ["seen once that one commits", "commit", "seen"],
  ["seen once that one gives its key back", "free", "seen"],
  ["fresh once that one rolls back", "roll back", "fresh"],
] as const;

const doneOrNot = [
  ["done once that one commits", "commit", "done"],
  ["begun once that one gives it back", "free", "begun"],
  ["begun once that one rolls back", "roll back", "begun"],
] as const;

/** What a transaction takes over: each is another row than none. */
const takenOver: readonly [string, (harness: Payments) => Promise<unknown>][] = [
  ["a key that was released", async ({ store }) => store.idempotency.release(key, "owner")],
  ["a run whose lease has ended", (harness) => pass(harness, shortLeaseMs)],
];

/** Claims beside an open transaction, of engines that have several. */
export const waitingCases: readonly PaymentCase[] = [
  ...paymentRules(["waiting"], {
    async "a wait for an open transaction ends after waitMs, with the fault locked and nothing kept"(
      harness,
    ) {
      const { transactions, idempotency } = harness.store;
      const open = await openPayment(harness, "commit");
      const late = claimOf([keyOf("b"), keyOf("b", "another key")], { waitMs: 200 });
      const { error } = await outcomeOf(() => pay(harness, late));
      await open.end();
      assert.equal(transactions.faultOf(error?.thrown), "locked", "the wait was too long");
      assert.equal(await idempotency.read("another key"), undefined, "nothing of it must be kept");
      assert.equal(await isUsed(harness, late), false, "its nonce must be as it was");
      assert.deepEqual(statusesOf(await pay(harness, claimOf([keyOf("c")]))), ["done"]);
    },
    async "a key of an open transaction is done for nobody in lease mode before that commits"(harness) {
      const { idempotency } = harness.store;
      const open = await openPayment(harness, "commit");
      const [reading, claiming] = [
        outcomeOf(() => idempotency.read(key)),
        outcomeOf(() => idempotency.claim(key, claimBy("b"))),
      ] as const;
      const [read, claim] = [await soon(reading), await soon(claiming)];
      await open.end();
      // What waited must not go on in the rows of the next case.
      await Promise.all([reading, claiming]);
      assert.notEqual(read?.value?.state, "done", "nothing must be read as done that has not committed");
      assert.notEqual(claim?.value?.status, "done", "nothing must be done that has not committed");
      const { status } = await idempotency.claim(key, claimBy("c"));
      assert.equal(status, "done", "the key must be done to everybody after the commit");
    },
    async "while an open transaction takes a run over, no step of lease mode takes or settles it"(harness) {
      await overtake(harness, "commit", async (ofKey, late) => {
        assert.ok(
          late.error !== undefined || ["done", "lost", "not-held"].includes(answerIn(late.value)),
          `${ofKey} must see what was committed while it waited, not ${answerIn(late.value)}`,
        );
        const record = await recordOf(harness.store.idempotency, ofKey);
        assert.equal(record?.state, "done", `${ofKey} must not undo the commit`);
        assert.equal(record.token, "a", `${ofKey} must not take the key from who committed`);
      });
    },
    async "a step of lease mode that waited for a transaction which is rolled back finds the run as it was"(
      harness,
    ) {
      await overtake(harness, "roll back", async (ofKey, late) => {
        assert.ok(
          late.error !== undefined || ["acquired", "held", "ok"].includes(answerIn(late.value)),
          `${ofKey} must find the run after the rollback, not ${answerIn(late.value)}`,
        );
        // What failed changed nothing, and can be tried again.
        if (late.error === undefined) return;
        const { status } = await harness.store.idempotency.claim(ofKey, claimBy("c"));
        assert.equal(status, "acquired", "under rerun an expired run must be acquired");
      });
    },
  }),
  ...doneOrNot.map(([what, how, status]): PaymentCase => ({
    name: `a key of an open transaction is waited for, and ${what}`,
    needs: ["waiting"],
    async check(harness) {
      const waited = await waitedFor(harness, how, claimOf([keyOf("b")]));
      assert.deepEqual(statusesOf(waited), [status]);
    },
  })),
  ...seenOrNot.map(([what, how, nonce]): PaymentCase => ({
    name: `a nonce of an open transaction is waited for, and ${what}`,
    needs: ["waiting"],
    async check(harness) {
      const same = nonceOf("nonce-of-a");
      const waited = await waitedFor(harness, how, claimOf([keyOf("b", "another key")], { nonce: same }));
      assert.equal(waited.nonce, nonce);
    },
  })),
  ...takenOver.map(([what, make]): PaymentCase => ({
    name: `${what} is waited for while an open transaction takes it over`,
    needs: ["waiting"],
    async check(harness) {
      await take(harness.store.idempotency, "owner", { leaseMs: shortLeaseMs });
      await make(harness);
      const waited = await waitedFor(harness, "commit", claimOf([keyOf("b")]));
      assert.deepEqual(statusesOf(waited), ["done"]);
    },
  })),
];

type Overtaking = (store: Store, ofKey: string, fence: number) => Awaitable<unknown>;

// The lease of the key has ended: without the transaction, each would succeed.
const overtakingSteps: Readonly<Record<string, Overtaking>> = {
  "claim under rerun": (store, ofKey) => store.claim(ofKey, claimBy("b")),
  "claim under hold": (store, ofKey) => store.claim(ofKey, claimBy("b", { recovery: "hold" })),
  complete: (store, ofKey) => store.complete(ofKey, "owner"),
  release: (store, ofKey) => store.release(ofKey, "owner"),
  hold: (store, ofKey) => store.hold(ofKey, "owner", "in doubt"),
  "resolve as released": (store, ofKey, fence) => store.resolve(ofKey, "released", { fence }),
  "resolve as done": (store, ofKey, fence) => store.resolve(ofKey, "done", { fence }),
};

/** Each step comes while an open transaction takes the run of its key over. */
async function overtake(
  harness: Payments,
  how: Ending,
  assertLate: (ofKey: string, late: Outcome<unknown>) => Promise<void>,
): Promise<void> {
  const { idempotency } = harness.store;
  const fences = new Map<string, number>();
  await inTurn(Object.keys(overtakingSteps), async (ofKey) => {
    fences.set(ofKey, await take(idempotency, "owner", { key: ofKey, leaseMs: shortLeaseMs }));
  });
  await pass(harness, shortLeaseMs);
  await inTurn(Object.entries(overtakingSteps), async ([ofKey, step]) => {
    const open = await openPayment(harness, how, ofKey);
    const waiting = outcomeOf(() => step(idempotency, ofKey, fences.get(ofKey) ?? 0));
    const early = await soon(waiting);
    await open.end();
    assert.ok(
      early === undefined || early.error !== undefined,
      `${ofKey} must wait for the end of the transaction or fail, it was answered`,
    );
    await assertLate(ofKey, await waiting);
  });
}

function answerIn(value: unknown): string {
  return typeof value === "object" && value !== null && "status" in value
    ? String(value.status)
    : String(value);
}

type Ending = "commit" | "free" | "roll back";

/** What the claim is answered that waits for an open payment, once that one has ended. */
async function waitedFor(harness: Payments, how: Ending, claim: TransactionClaim): Promise<TransactionBegun> {
  const open = await openPayment(harness, how);
  const waiting: Promise<Outcome<TransactionBegun>> = outcomeOf(() => pay(harness, claim));
  const early = await soon(waiting);
  await open.end();
  assert.equal(early, undefined, "the open transaction must be waited for");
  const { value, error } = await waiting;
  if (value === undefined) throw error?.thrown;
  const paid = (how === "commit" ? 1 : 0) + statusesOf(value).filter((status) => status === "begun").length;
  assert.equal((await writtenBy(harness)).length, paid, "each payment must be made once");
  return value;
}

/** A payment of `a` whose handler has written, and waits. With `free` it has not written, and gives its key back. */
async function openPayment(
  harness: Payments,
  how: Ending,
  ofKey: string = key,
): Promise<{ end(): Promise<void> }> {
  const { transactions } = harness.store;
  const claim = claimOf([keyOf("a", ofKey)], ofKey === key ? {} : { nonce: undefined });
  const open = await openUntilEnded<Ending>((opened, ending) =>
    begin(harness, claim, function* work(tx, keys): Steps<void> {
      if (how !== "free") yield* answerOf(harness.write(tx, keys[0]?.key ?? ""));
      opened();
      if ((yield* answerOf(ending)) === "roll back") throw new Error("rolled back");
      yield* answerOf(how === "free" ? transactions.free(tx, keys) : transactions.keep(tx, keys, false));
    }),
  );
  return { end: () => open.end(how) };
}
