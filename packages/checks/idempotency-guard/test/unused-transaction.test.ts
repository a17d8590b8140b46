import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { GuardNotice } from "@countersign/core";
import {
  memoryIdempotencyStore,
  type TransactionBegun,
  type TransactionStore,
} from "@countersign/idempotency";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { describe, expect, test } from "@jest/globals";
import { keyGuard } from "../src/check.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

const transaction = { name: "tx" };
type Tx = typeof transaction;
type Handle = (req: object, context: { readonly tx: Tx }) => unknown;

/** What the guard says of `times` requests that `handle` handles, on an engine that begins every key. */
async function noticesOf(
  handle: Handle,
  { mode = "async", times = 2, written = (): number | undefined => 1, duplicates = 0 } = {},
): Promise<readonly string[]> {
  const heard: string[] = [];
  const hear = (notice: unknown): void => void heard.push((notice as GuardNotice).code);
  subscribe("countersign:notice", hear);
  afterTest(() => unsubscribe("countersign:notice", hear));
  let begins = 0;
  const begun = (): TransactionBegun => ({
    nonce: "fresh",
    keys: [begins++ < duplicates ? { status: "done", fingerprint: "f" } : { status: "begun" }],
  });
  const sketch = {
    engine: "sketch",
    mode,
    retentionMs: 86_400_000,
    run: (work: (tx: Tx) => unknown) => Promise.resolve(work(transaction)),
    begin: () => (mode === "async" ? Promise.resolve(begun()) : begun()),
    keep: () => undefined,
    assertOpen: () => undefined,
    free: () => undefined,
    hold: () => new Set<string>(),
    written,
    faultOf: () => undefined,
  };
  const stores = {
    idempotency: memoryIdempotencyStore(),
    nonces: { claim: () => Promise.resolve("fresh" as const) },
    transactions: sketch as unknown as TransactionStore<Tx, "async">,
  };
  const { perform } = keyGuard<object>({ stores, key: () => "order-1", fingerprint: () => "f", handle });
  const handling = {
    whileConnected: <T>(work: (left: AbortSignal) => Promise<T>) => work(new AbortController().signal),
    begin: () => Promise.reject(new Error("no handler follows")),
  };
  for (let time = 0; time < times; time++) {
    const req = { method: "POST" };
    // oxlint-disable-next-line no-await-in-loop -- one request after the other
    await perform(req, handling).catch(() => {});
  }
  // Each notice is a process warning too.
  for (const code of heard) expectWarning(new RegExp(`^\\[${code}\\]`));
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

  /** An engine that counts, and of which each handler but those whose turn is in `idle` writes a row. */
  function counting(idle: readonly number[]) {
    let [rows, turn, looks] = [0, 0, 0];
    return {
      looks: () => looks,
      written: () => ((looks += 1), rows),
      handle: (_req: object, { tx }: { readonly tx: Tx }) => {
        rows = idle.includes(turn++) ? 0 : 1;
        return tx.name;
      },
    };
  }

  test.each(["async", "sync"])(
    "is said once of a handler that writes no row, on an engine that is %s",
    async (mode) => {
      const { handle, written } = counting([0, 1]);
      expect(await noticesOf(handle, { mode, written })).toEqual(["transaction-unused"]);
    },
  );

  test("is said although many duplicates came first, for which no handler runs", async () => {
    const { handle, written } = counting([0]);
    const idle = { written, duplicates: 30, times: 31 };
    expect(await noticesOf(handle, idle)).toEqual(["transaction-unused"]);
  });

  test("is said of a later handler too, and asks the engine no more once it was said", async () => {
    const forgetful = counting([3]);
    expect(await noticesOf(forgetful.handle, { written: forgetful.written, times: 8 })).toEqual([
      "transaction-unused",
    ]);
    expect(forgetful.looks()).toBe(4);
  });

  test("is said where the engine does not count, and no driver reported a change", async () => {
    const handle: Handle = (_req, { tx }) => tx.name;
    expect(await noticesOf(handle, { written: () => undefined })).toEqual(["transaction-unused"]);
  });

  test("says nothing where the engine refuses to count, and the handler's response stands", async () => {
    const written = (): never => {
      throw new Error("the connection was released");
    };
    let paid = 0;
    const handle: Handle = (_req, { tx }) => {
      paid += 1;
      return tx.name;
    };
    expect(await noticesOf(handle, { written })).toEqual([]);
    expect(paid).toBe(2);
  });
});
