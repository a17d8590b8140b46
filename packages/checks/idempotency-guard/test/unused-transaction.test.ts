import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { GuardNotice } from "@countersign/core";
import {
  memoryIdempotencyStore,
  type TransactionBegun,
  type TransactionStore,
} from "@countersign/idempotency";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { describe, expect, test } from "@jest/globals";
import { transactionGuard } from "../src/transaction-guard.ts";

const transaction = { name: "tx" };
type Tx = typeof transaction;
type Handle = (req: object, context: { readonly tx: Tx }) => unknown;

/** What the guard says of `times` requests that `handle` handles, on an engine that begins every key. */
async function noticesOf(handle: Handle, { mode = "async", times = 2 } = {}): Promise<readonly string[]> {
  const heard: string[] = [];
  const hear = (notice: unknown): void => void heard.push((notice as GuardNotice).code);
  subscribe("countersign:notice", hear);
  afterTest(() => unsubscribe("countersign:notice", hear));
  const begun: TransactionBegun = { nonce: "fresh", keys: [{ status: "begun" }] };
  const sketch = {
    engine: "sketch",
    mode,
    retentionMs: 86_400_000,
    run: (work: (tx: Tx) => unknown) => Promise.resolve(work(transaction)),
    begin: () => (mode === "async" ? Promise.resolve(begun) : begun),
    keep: () => undefined,
    undo: () => undefined,
    faultOf: () => undefined,
  };
  const stores = {
    idempotency: memoryIdempotencyStore(),
    nonces: { claim: () => Promise.resolve("fresh" as const) },
    transactions: sketch as unknown as TransactionStore<Tx, "async">,
  };
  const { admit } = transactionGuard<object>({
    stores,
    key: () => "order-1",
    fingerprint: () => "f",
    handle: handle as never,
  } as never);
  for (let time = 0; time < times; time++) {
    const req = { method: "POST" };
    // oxlint-disable-next-line no-await-in-loop -- one request after the other
    await admit(req, (work) => work(new AbortController().signal)).catch(() => {});
  }
  return heard;
}

describe("transaction-unused", () => {
  test("is said once of a handler that ends without a look at tx", async () => {
    expect(await noticesOf(() => "written by something else")).toEqual(["transaction-unused"]);
  });

  test.each<[string, Handle, object]>([
    ["takes tx", (_req, { tx }) => tx.name, {}],
    ["hands its context on", (_req, context) => ({ ...context }), {}],
    ["throws: nothing commits", () => Promise.reject(new Error("account closed")), {}],
    ["has one connection, as on SQLite", () => undefined, { mode: "sync" }],
  ])("is not said of a handler that %s", async (_case, handle, engine) => {
    expect(await noticesOf(handle, engine)).toEqual([]);
  });
});
