import type { NonceClaim } from "@countersign/core";
import type {
  TransactionBegun,
  TransactionClaim,
  TransactionKey,
  TransactionStores,
} from "@countersign/idempotency";
import { type Steps, answerOf, runStepsIn } from "@countersign/idempotency/door";
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
export const pay = endingBy("keep");
/** As an endpoint refuses: the handler works, and undo() takes it back. */
export const refuse = endingBy("undo");

function endingBy(end: "keep" | "undo"): Pays {
  return async (harness, claim, handler = writingIn(harness)) =>
    begin(harness, claim, function* steps(tx, keys): Steps<void> {
      yield* handler(tx, keys);
      yield* answerOf(harness.store.transactions[end](tx, keys, false));
    });
}

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
      if (begun.nonce === "seen") {
        seen.push(begun);
        throw new Error("the nonce was seen");
      }
      const keys = claim.keys.filter((_key, index) => begun.keys[index]?.status === "begun");
      if (keys.length > 0) yield* steps(tx, keys);
      return begun;
    });
  } catch (error) {
    const [begun] = seen;
    if (begun !== undefined) return begun;
    throw error;
  }
}

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
