// A handler that refuses, and whose transaction is gone with its nonce before anybody is told.
import { GuardError, type NonceStore } from "@countersign/core";
import { Transactor } from "@countersign/idempotency/door";
import { expect, test } from "@jest/globals";

const key = { key: "k", token: "t", fingerprint: "f" };
const nonce = { scope: "s", nonce: "n", token: "t", retainMs: 60_000 };
const times = {
  waitMs: 100,
  storeTimeoutMs: 1_000,
  idleTimeoutMs: 1_000,
  transactionTimeoutMs: 60_000,
  maxWaiters: 1,
};
const refusal = new GuardError({ status: 400, code: "frozen", message: "refused" });

async function errorOf(thrown: Error, claim: NonceStore["claim"], withNonce = true): Promise<unknown> {
  const lineLost = new Error("Connection terminated");
  const transactions = {
    engine: "test",
    mode: "async",
    retentionMs: 1,
    run: async <T>(work: (tx: object) => T | Promise<T>) => work({}),
    begin: () => ({ nonce: "fresh", keys: [{ status: "begun" }] }) as const,
    keep() {},
    undo: () => Promise.reject(lineLost),
    faultOf: (error: unknown) => (error === lineLost ? "unavailable" : undefined),
  } as const;
  const transactor = new Transactor(
    { transactions, nonces: { claim } },
    { ...times, recovery: "hold", retryAfterSeconds: 5 },
  );
  const paying = transactor.run({ keys: [key], nonce: withNonce ? nonce : undefined }, ({ tx }) =>
    transactor.behindSavepoint(tx, [key], false, () => {
      throw thrown;
    }),
  );
  return paying.catch((error: unknown) => error);
}

test("is told of the refusal when its nonce could be claimed alone", async () => {
  expect(await errorOf(refusal, () => "fresh")).toBe(refusal);
});

test.each<[string, NonceStore["claim"]]>([
  ["a replay has had its nonce meanwhile", () => "seen"],
  ["nobody could claim its nonce", () => Promise.reject(new Error("no line"))],
])("is 503 when %s: a replay may still be paid", async (_case, claim) => {
  expect(await errorOf(refusal, claim)).toMatchObject({
    status: 503,
    code: "transaction-unavailable",
    cause: refusal,
  });
});

test("is told of the refusal where requests have no nonce", async () => {
  expect(await errorOf(refusal, () => "seen", false)).toBe(refusal);
});

test("stays its handler's own error, which is no answer for good", async () => {
  const fault = new Error("a mistake");
  expect(await errorOf(fault, () => "seen")).toBe(fault);
});
