import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { GuardError, type GuardNotice } from "@countersign/core";
import { memoryIdempotencyStore, type TransactionStores } from "@countersign/idempotency";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";
import { describe, expect, test } from "@jest/globals";
import { transactionRequests } from "../src/perform-request.ts";

const transaction = { name: "tx" };

const stores: TransactionStores<typeof transaction> = {
  idempotency: memoryIdempotencyStore(),
  nonces: { claim: () => "fresh" },
  transactions: {
    engine: "sketch",
    mode: "async",
    retentionMs: 86_400_000,
    run: (work) => Promise.resolve(work(transaction)),
    begin: () => Promise.resolve({ nonce: "fresh", keys: [{ status: "begun" }] }),
    keep: async () => {},
    assertOpen: async () => {},
    free: async () => {},
    hold: () => Promise.reject(new Error("connect ECONNREFUSED")),
    faultOf: () => undefined,
  },
};

function failing(failure: Error, req: object = {}): Promise<unknown> {
  const { perform } = transactionRequests(stores, { scope: "orders", retryAfterSeconds: 7 });
  const request = { key: "order-1", fingerprint: () => "f", handle: () => Promise.reject(failure) };
  return perform(req, request, { whileConnected: (work) => work(new AbortController().signal) });
}

function notices(): readonly GuardNotice[] {
  const heard: GuardNotice[] = [];
  const hear = (notice: unknown): void => void heard.push(notice as GuardNotice);
  subscribe("countersign:notice", hear);
  afterTest(() => unsubscribe("countersign:notice", hear));
  return heard;
}

describe("a handler that fails while its store is down, so that nobody knows what it has committed,", () => {
  test.each<[string, Error]>([
    ["an error", new Error("no such account")],
    ["a refusal for good", new GuardError({ status: 400, code: "account-frozen", message: "frozen" })],
    ["a refusal that says paid", new GuardError({ status: 409, code: "booked", message: "booked" })],
    ["a 503 of its own", new GuardError({ status: 503, code: "bank-away", message: "later" })],
  ])("is 503 after %s, and its operator is told once of the key", async (_what, failure) => {
    const heard = notices();
    const req = { method: "POST" };
    await expect(failing(failure, req)).rejects.toMatchObject({
      status: 503,
      code: "transaction-unknown",
      headers: { "Retry-After": "7" },
    });
    expect(heard).toEqual([
      expect.objectContaining({
        guard: "idempotencyGuard",
        code: "transaction-unknown",
        message: expect.stringContaining('key "orders:order-1" has a handler that failed'),
        req,
      }),
    ]);
    expect(heard[0]).toHaveProperty("error.cause.errors.0", failure);
  });

  test("is a process warning where nobody subscribes", async () => {
    expectWarning(/^\[transaction-unknown\] .* key "orders:order-1" .* it may be done$/);
    await expect(failing(new Error("no such account"))).rejects.toMatchObject({ status: 503 });
  });
});
