import assert from "node:assert/strict";
import type { NonceClaim } from "@countersign/core";
import type {
  TransactionBegun,
  TransactionClaim,
  TransactionKey,
  TransactionStores,
} from "@countersign/idempotency";
import { type Steps, answerOf, runStepsIn } from "@countersign/idempotency/internal";
import { fingerprintOf, key as oneKey } from "./claims.ts";
import { type CaseDefinition, rules } from "./contract.ts";
import type { TransactionStoreHarness } from "./harness.ts";

export type Payments = TransactionStoreHarness<unknown>;
export type PaymentCase = CaseDefinition<Payments>;
export const paymentRules = rules<Payments>;

/** What a case's handler does with the keys that were begun. */
export type Handler = (tx: unknown, keys: readonly TransactionKey[]) => Steps<unknown>;

export function keyOf(token: string, key: string = oneKey): TransactionKey {
  return { key, token, fingerprint: fingerprintOf(token) };
}

/** A claim of these keys, with a nonce of the first one's token. */
export function claimOf(
  keys: readonly TransactionKey[],
  more: Partial<TransactionClaim> = {},
): TransactionClaim {
  return {
    nonce: nonceOf(`nonce-of-${keys[0]?.token ?? ""}`),
    keys,
    recovery: "rerun",
    leaseMs: 60_000,
    waitMs: 5_000,
    idleTimeoutMs: 60_000,
    ...more,
  };
}

let nonceTokens = 0;

/** Another request's each time. */
export function nonceOf(nonce: string): NonceClaim {
  nonceTokens += 1;
  return { scope: "keyid", nonce, token: `request-${nonceTokens}`, retainMs: 3_600_000 };
}

export async function inTransaction<T>(
  { transactions: store }: TransactionStores<unknown>,
  work: (tx: unknown) => Steps<T>,
): Promise<T> {
  return store.run((tx) => runStepsIn(store.mode, work(tx)));
}

type Pays = (harness: Payments, claim: TransactionClaim, handler?: Handler) => Promise<TransactionBegun>;

/** As an endpoint pays: the handler works if any key was begun; then keep(). Rolls back after a seen nonce. By default it writes a row a key. */
export const pay: Pays = async (harness, claim, handler = writingIn(harness)) =>
  begin(harness, claim, function* steps(tx, keys): Steps<void> {
    yield* handler(tx, keys);
    yield* answerOf(harness.store.transactions.keep(tx, keys, false));
  });

/** What the handlers of {@link refuse} throw. */
const refusal = new Error("the handler refuses");

/**
 * As an endpoint refuses: the handler works and fails, assertOpen() finds the transaction open, and all of it is rolled back. The nonce is
 * claimed alone after that, and hold() finds that nothing has committed.
 */
export const refuse: Pays = async (harness, claim, handler = writingIn(harness)) => {
  const { transactions, nonces } = harness.store;
  const { nonce, keys: claimed } = claim;
  let hasFailed = false;
  const begun = await begin(harness, claim, function* steps(tx, keys): Steps<void> {
    hasFailed = true;
    yield* handler(tx, keys);
    yield* answerOf(transactions.assertOpen(tx, keys));
    throw refusal;
  });
  if (!hasFailed) return begun;
  if (nonce !== undefined) {
    const alone = await nonces.claim(nonceOf(nonce.nonce));
    assert.equal(alone, "fresh", "the nonce must have been rolled back with the rest");
  }
  const held = await transactions.hold(claimed, "transaction-broken");
  assert.deepEqual([...held], [], "nothing has committed: no key is to hold");
  return begun;
};

/** Begins, and hands the keys that were begun to the steps, if there are any. */
export async function begin(
  { store }: Payments,
  claim: TransactionClaim,
  steps: Handler,
): Promise<TransactionBegun> {
  const seen: TransactionBegun[] = [];
  try {
    return await inTransaction(store, function* work(tx): Steps<TransactionBegun> {
      const begun = yield* answerOf(store.transactions.begin(tx, claim));
      seen.push(begun);
      if (begun.nonce === "seen") throw nonceSeen;
      const keys = claim.keys.filter((_key, index) => begun.keys[index]?.status === "begun");
      if (keys.length > 0) yield* steps(tx, keys);
      return begun;
    });
  } catch (error) {
    const [begun] = seen;
    if (begun !== undefined && (error === nonceSeen || error === refusal)) return begun;
    throw error;
  }
}

const nonceSeen = new Error("the nonce was seen");

function writingIn(harness: Payments): Handler {
  return function* writing(tx, keys): Steps<void> {
    for (const { key } of keys) yield* answerOf(harness.write(tx, key));
  };
}

export const doNothing: Handler = function* doNothing() {};

export async function writtenBy(harness: Pick<Payments, "written">): Promise<readonly string[]> {
  return sorted(await harness.written());
}

export function sorted(texts: readonly string[]): readonly string[] {
  const copy = [...texts];
  copy.sort((one, other) => (one < other ? -1 : 1));
  return copy;
}

/** Whether the nonce of the claim is used. */
export async function isUsed({ store }: Payments, { nonce }: TransactionClaim): Promise<boolean> {
  if (nonce === undefined) throw new Error("a case asks for the nonce of a claim without one");
  return (await store.nonces.claim(nonceOf(nonce.nonce))) === "seen";
}

export function statusesOf({ keys }: TransactionBegun): readonly string[] {
  return keys.map(({ status }) => status);
}
