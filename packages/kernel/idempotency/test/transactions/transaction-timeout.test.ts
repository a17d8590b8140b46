import { describe, expect } from "@jest/globals";
import { GuardError } from "@countersign/core";
import type { TransactionStore } from "@countersign/idempotency";
import { eventually, sleep } from "@countersign/test-support/runs/eventually.ts";
import { steadyTest as test } from "@countersign/test-support/runs/steadily.ts";
import { answerOf, type Steps } from "../../src/transactions/steps.ts";
import { Transactor } from "../../src/transactions/transactor.ts";
import type { Behind, OpenTransaction } from "../../src/transactions/transaction-attempt.ts";

type Step = "begin" | "work" | "keep" | "undo" | "commit" | "claim";

const tx = { name: "tx" };
const keys = [{ key: "k", token: "t", fingerprint: "f" }];
const nonce = { scope: "s", nonce: "n", token: "t", retainMs: 1_000 };
const boom = new Error("boom");
const conflict = new Error("could not serialize");
const refusal = new GuardError({ status: 400, code: "account-frozen", message: "no" });

/** What each step of the first transaction does; those of later ones answer at once. */
type Script = Partial<Record<Step, () => Promise<unknown>>>;

const never = () => new Promise<never>(() => {});
const fails = (fault: Error) => () => Promise.reject(fault);

function scripted(script: Script) {
  const log: string[] = [];
  let transactions = 0;
  const play = async (step: Step): Promise<void> => {
    log.push(step);
    if (transactions <= 1) await script[step]?.();
  };
  const store: TransactionStore<typeof tx> = {
    engine: "scripted",
    mode: "async",
    retentionMs: 1,
    async run(work) {
      transactions += 1;
      let result: Awaited<ReturnType<typeof work>>;
      try {
        result = await work(tx);
      } catch (error) {
        log.push("rollback");
        throw error;
      }
      await play("commit");
      return result;
    },
    async begin() {
      await play("begin");
      return { nonce: "fresh", keys: [{ status: "begun" }] };
    },
    keep: () => play("keep"),
    undo: () => play("undo"),
    faultOf: (error) => (error === conflict ? "conflict" : undefined),
  };
  const nonces = {
    async claim() {
      await play("claim");
      return "fresh" as const;
    },
    close: () => {},
  };
  const times = { waitMs: 0, storeTimeoutMs: 20, idleTimeoutMs: 1_000, transactionTimeoutMs: 200 };
  const others = { maxWaiters: 10, retryAfterSeconds: 7, recovery: "hold" } as const;
  const transactor = new Transactor({ transactions: store, nonces }, { ...times, ...others });
  const run = () =>
    transactor.run({ keys, nonce }, function* pay({ tx: its }: OpenTransaction<typeof tx>): Steps<
      Behind<string>
    > {
      return yield* transactor.behindSavepoint(its, keys, false, function* work() {
        yield* answerOf(play("work"));
        return "paid";
      });
    });
  return { transactor, run, log };
}

const endOf = (run: () => Promise<unknown>): Promise<unknown> => run().catch((error: unknown) => error);

const ways: readonly [string, () => Promise<unknown>][] = [
  ["succeeds", () => Promise.resolve()],
  ["fails", fails(boom)],
  ["meets a conflict", fails(conflict)],
];

function deferred() {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve };
}

/** Rejections of which nobody hears while `work` runs. */
async function unheard(work: () => Promise<void>): Promise<readonly unknown[]> {
  const rejections: unknown[] = [];
  const listener = (error: unknown) => rejections.push(error);
  process.on("unhandledRejection", listener);
  try {
    await work();
    await sleep(300);
  } finally {
    process.off("unhandledRejection", listener);
  }
  return rejections;
}

describe("a transaction that takes longer than transactionTimeoutMs", () => {
  test.each<[string, Script, string]>([
    ["a handler", { work: never }, "transaction-timed-out"],
    ["the last statement behind it", { keep: never }, "transaction-timed-out"],
    ["the undoing of what it did", { work: fails(boom), undo: never }, "transaction-timed-out"],
    ["COMMIT", { commit: never }, "commit-unknown"],
  ])("is 503 when %s never ends, and leaves its lane and drain()", async (_what, script, code) => {
    const { transactor, run, log } = scripted(script);
    const retry = { "Retry-After": "7" };
    expect(await endOf(run)).toMatchObject({ status: 503, code, headers: retry });
    // A duplicate waits in the database for the row, not here.
    expect(await run()).toEqual({ value: "paid" });
    expect(log.filter((step) => step === "begin")).toHaveLength(2);
    expect(await transactor.drain(0)).toBe(0);
  });

  test("throws the handler's error when the nonce of a rolled back request is never claimed", async () => {
    const { run, transactor } = scripted({ work: fails(boom), undo: fails(boom), claim: never });
    expect(await endOf(run)).toBe(boom);
    expect(await transactor.drain(0)).toBe(0);
  });

  test("refuses nobody for good when the nonce of a rolled back request is never claimed", async () => {
    const { run } = scripted({ work: fails(refusal), undo: fails(boom), claim: never });
    expect(await endOf(run)).toMatchObject({ status: 503, code: "transaction-unavailable" });
  });

  test.each(ways)(
    "commits nothing of a handler that %s too late, and begins nothing again",
    async (_way, ends) => {
      const late = deferred();
      const { run, log } = scripted({ work: () => late.promise.then(ends) });
      const rejections = await unheard(async () => {
        expect(await endOf(run)).toMatchObject({ code: "transaction-timed-out" });
        late.resolve();
        await eventually(() => log.includes("rollback"));
      });
      expect(log).toEqual(["begin", "work", "rollback"]);
      expect(rejections).toEqual([]);
    },
  );

  test.each(ways)("never repeats a COMMIT that %s too late", async (_way, ends) => {
    const late = deferred();
    const { run, log } = scripted({ commit: () => late.promise.then(ends) });
    const rejections = await unheard(async () => {
      expect(await endOf(run)).toMatchObject({ code: "commit-unknown" });
      late.resolve();
    });
    expect(log).toEqual(["begin", "work", "keep", "commit"]);
    expect(rejections).toEqual([]);
  });
});
