import { describe, expect, test } from "@jest/globals";
import type { TransactionBegun, TransactionFault, TransactionStore } from "@countersign/idempotency";
import { sleep } from "@countersign/test-support/runs/eventually.ts";
import { transactionBroken } from "../../src/refusals.ts";
import { answerOf, type Steps } from "../../src/transactions/steps.ts";
import type { Behind, OpenTransaction } from "../../src/transactions/transaction-attempt.ts";
import { Transactor } from "../../src/transactions/transactor.ts";

type Step = "connect" | "begin" | "work" | "keep" | "undo" | "commit" | "claim";

/** What a call does, by its number from 1: an error to throw, milliseconds to wait, or nothing. */
type Script = Partial<Record<Step, (call: number) => unknown>>;

const tx = { name: "tx" };
const keys = [{ key: "k", token: "t", fingerprint: "f" }];
const nonce = { scope: "s", nonce: "n", token: "t", retainMs: 1_000 };
const fresh: TransactionBegun = { nonce: "fresh", keys: [{ status: "begun" }] };

class EngineError extends Error {
  readonly fault: TransactionFault;
  constructor(fault: TransactionFault) {
    super(fault);
    this.fault = fault;
  }
}

const is = (fault: TransactionFault) => () => new EngineError(fault);
const boom = new Error("boom");
const mistake = new TypeError("no transaction");
const broken = transactionBroken("a statement failed behind it");

function scripted(script: Script, { begun = fresh, storeTimeoutMs = 20_000 } = {}) {
  const calls: Partial<Record<Step, number>> = {};
  const log: string[] = [];
  const play = async (step: Step): Promise<void> => {
    const call = (calls[step] = (calls[step] ?? 0) + 1);
    log.push(step);
    const does = script[step]?.(call);
    if (does instanceof Error) throw does;
    if (typeof does === "number") await sleep(does);
    else await does;
  };
  const transactions: TransactionStore<typeof tx> = {
    engine: "scripted",
    mode: "async",
    retentionMs: 1,
    async run(work) {
      await play("connect");
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
      return begun;
    },
    keep: () => play("keep"),
    undo: () => play("undo"),
    faultOf: (error) => (error instanceof EngineError ? error.fault : undefined),
  };
  const nonces = {
    async claim() {
      await play("claim");
      return "fresh" as const;
    },
    close: () => {},
  };
  const options = { waitMs: 0, storeTimeoutMs, idleTimeoutMs: 1_000, maxWaiters: 10, retryAfterSeconds: 7 };
  const unused = { recovery: "hold", transactionTimeoutMs: 60_000 } as const;
  const transactor = new Transactor({ transactions, nonces }, { ...options, ...unused });
  const run = () =>
    transactor.run({ keys, nonce }, function* pay({ tx: its }: OpenTransaction<typeof tx>): Steps<
      Behind<string>
    > {
      return yield* transactor.behindSavepoint(its, keys, false, function* work() {
        yield* answerOf(play("work"));
        return "paid";
      });
    });
  return { transactor, run, log, calls };
}

const paid = { value: "paid" };
const refused = (code: string, status = 503) => expect.objectContaining({ code, status });
const unavailable = refused("transaction-unavailable");
const conflict = refused("transaction-conflict");
const usual = "connect begin work keep commit";
const undone = "connect begin work undo commit";

describe("Transactor", () => {
  // How often the transaction was begun; the steps of the last one.
  test.each<[string, Script, unknown, number, string]>([
    ["what works", {}, paid, 1, usual],
    ["nine conflicts at begin", { begin: (call) => call < 10 && is("conflict")() }, paid, 10, usual],
    ["ten conflicts at begin", { begin: is("conflict") }, conflict, 10, "connect begin rollback"],
    ["a conflict in the handler", { work: (call) => call < 2 && is("conflict")() }, paid, 2, usual],
    ["a conflict at the last statement", { keep: (call) => call < 2 && is("conflict")() }, paid, 2, usual],
    ["a conflict at COMMIT", { commit: (call) => call < 3 && is("conflict")() }, paid, 3, usual],
    ["ten conflicts at COMMIT", { commit: is("conflict") }, conflict, 10, usual],
    ["a lock at begin", { begin: is("locked") }, "in-flight", 1, "connect begin rollback"],
    ["a lock before BEGIN", { connect: is("locked") }, "in-flight", 1, "connect"],
    ["a lock in the handler", { work: is("locked") }, conflict, 1, "connect begin work rollback"],
    ["no connection", { connect: is("unavailable") }, unavailable, 1, "connect"],
    ["an error of nobody before BEGIN", { connect: () => boom }, unavailable, 1, "connect"],
    ["an error of nobody at begin", { begin: () => boom }, unavailable, 1, "connect begin rollback"],
    ["a mistake before BEGIN", { connect: () => mistake }, mistake, 1, "connect"],
    ["a refusal by the server at begin", { begin: is("refused") }, unavailable, 1, "connect begin rollback"],
    [
      "no line in the handler",
      { work: is("unavailable"), undo: is("unavailable") },
      unavailable,
      1,
      "connect begin work undo rollback",
    ],
    [
      "no line in the handler, whose library says so in words of its own",
      { work: is("unavailable"), undo: () => boom },
      unavailable,
      1,
      "connect begin work undo rollback",
    ],
    [
      "somebody else's line in the handler: its own error",
      { work: is("unavailable") },
      { error: is("unavailable")() },
      1,
      undone,
    ],
    [
      "somebody else's line in the handler, and an undo that is refused",
      { work: is("unavailable"), undo: is("refused") },
      is("unavailable")(),
      1,
      "connect begin work undo rollback claim",
    ],
    ["no line at COMMIT", { commit: is("unavailable") }, refused("commit-unknown"), 1, usual],
    ["an error of nobody at COMMIT", { commit: () => boom }, refused("commit-unknown"), 1, usual],
    ["a handler's error", { work: () => boom }, { error: boom }, 1, undone],
    ["a handler's TypeError", { work: () => mistake }, { error: mistake }, 1, undone],
    ["a statement that is refused", { work: is("refused") }, { error: is("refused")() }, 1, undone],
    [
      "an error of the last statement",
      { keep: () => boom },
      { error: boom },
      1,
      "connect begin work keep undo commit",
    ],
    [
      "an undo that fails",
      { work: () => boom, undo: () => mistake },
      boom,
      1,
      "connect begin work undo rollback claim",
    ],
    ["a COMMIT refused for certain", { commit: is("refused") }, is("refused")(), 1, `${usual} claim`],
    [
      "a COMMIT that rolled back",
      { commit: () => broken },
      refused("transaction-broken", 500),
      1,
      `${usual} claim`,
    ],
    [
      "an undo and a nonce that fail",
      { work: () => boom, undo: is("unavailable"), claim: () => mistake },
      boom,
      1,
      "connect begin work undo rollback claim",
    ],
  ])("ends %s", async (_case, script, expected, times, steps) => {
    const { run, log, calls } = scripted(script);
    expect(await run().catch((error: unknown) => error)).toEqual(expected);
    expect(calls.connect).toBe(times);
    expect(log.slice(log.lastIndexOf("connect")).join(" ")).toBe(steps);
    // The lane is free again.
    await run().catch(() => {});
    expect(calls.connect).toBeGreaterThan(times);
  });

  test("rolls back what meets a used nonce, and runs no handler", async () => {
    const { run, log } = scripted({}, { begun: { nonce: "seen", keys: [] } });
    expect(await run()).toBe("nonce-seen");
    expect(log).toEqual(["connect", "begin", "rollback"]);
  });

  test.each<Step>(["connect", "begin"])("begins nothing after its time-out at %s", async (step) => {
    const { run, log } = scripted({ [step]: () => 150 }, { storeTimeoutMs: 10 });
    await expect(run()).rejects.toMatchObject({ code: "transaction-unavailable" });
    await sleep(300);
    expect(log).toEqual([...(step === "connect" ? ["connect"] : ["connect", "begin"]), "rollback"]);
  });

  test("drains: begins nothing any more, and waits for what runs", async () => {
    let finish = (): void => {};
    const working = new Promise<void>((resolve) => (finish = resolve));
    const { transactor, run } = scripted({ work: () => working });
    const running = run();
    expect(await transactor.drain(30)).toBe(1);
    await expect(run()).rejects.toMatchObject({
      code: "draining",
      headers: { Connection: "close", "Retry-After": "7" },
    });
    const drained = transactor.drain(30_000);
    finish();
    expect(await running).toEqual(paid);
    expect(await drained).toBe(0);
  });

  test("lets a second attempt at its key wait for nobody with waitMs 0", async () => {
    let finish = (): void => {};
    const working = new Promise<void>((resolve) => (finish = resolve));
    const { run, calls } = scripted({ work: () => working });
    const running = run();
    expect(await run()).toBe("in-flight");
    finish();
    await running;
    expect(calls.connect).toBe(1);
  });
});
