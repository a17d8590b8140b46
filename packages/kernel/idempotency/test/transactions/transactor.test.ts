import { GuardError } from "@countersign/core";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { describe, expect, test } from "@jest/globals";
import { transactionBroken } from "../../src/refusals.ts";
import { is, keys, scripted, type Script, type Step } from "./scripted.ts";

const boom = new Error("boom");
const mistake = new TypeError("no transaction");
const broken = transactionBroken("a statement failed behind it");
const refusal = new GuardError({ status: 400, code: "frozen", message: "refused" });

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
      "a refusal whose undo fails, told once its nonce is claimed alone",
      { work: () => refusal, undo: is("unavailable") },
      refusal,
      1,
      "connect begin work undo rollback claim",
    ],
    // A replay may still be paid.
    ...[() => "seen", () => boom].map((claim): [string, Script, unknown, number, string] => [
      `a refusal whose nonce cannot be claimed alone: ${claim()}`,
      { work: () => refusal, undo: is("unavailable"), claim },
      expect.objectContaining({ status: 503, code: "transaction-unavailable", cause: refusal }),
      1,
      "connect begin work undo rollback claim",
    ]),
    [
      "a handler's own error, which is no answer for good, whose nonce a replay has had meanwhile",
      { work: () => boom, undo: is("unavailable"), claim: () => "seen" },
      boom,
      1,
      "connect begin work undo rollback claim",
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

  test("tells a refusal whose undo fails where requests have no nonce", async () => {
    const { run } = scripted({ work: () => refusal, undo: is("unavailable"), claim: () => "seen" });
    await expect(run({ keys })).rejects.toBe(refusal);
  });

  test("rolls back what meets a used nonce, and runs no handler", async () => {
    const { run, log } = scripted({}, { begun: { nonce: "seen", keys: [] } });
    expect(await run()).toBe("nonce-seen");
    expect(log).toEqual(["connect", "begin", "rollback"]);
  });

  test.each<Step>(["connect", "begin"])("begins nothing after its time-out at %s", async (step) => {
    const { run, log } = scripted({ [step]: () => 150 }, { storeTimeoutMs: 10 });
    await expect(run()).rejects.toMatchObject({ code: "transaction-unavailable" });
    await eventually(() => log.includes("rollback"));
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
