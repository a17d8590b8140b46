import { GuardError } from "@countersign/core";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { describe, expect, test } from "@jest/globals";
import { transactionBroken, transactionNotRolledBack } from "../../src/refusals.ts";
import { is, keys, nonce, scripted, type Script, type Step } from "./scripted.ts";

const boom = new Error("boom");
const mistake = new TypeError("no transaction");
const broken = transactionBroken("a statement failed behind it");
const refusal = new GuardError({ status: 400, code: "frozen", message: "refused" });

const paid = "paid";
const refused = (code: string, status = 503) => expect.objectContaining({ code, status });
const unavailable = refused("transaction-unavailable");
const conflict = refused("transaction-conflict");
const usual = "connect begin work keep commit";
const undone = "connect begin work probe rollback claim hold";
const unknown = refused("transaction-unknown");
const held = () => "held";

describe("TransactionOwner", () => {
  // How often the transaction was begun; the steps of the last one.
  test.each<[string, Script, unknown, number, string]>([
    ["what works", {}, paid, 1, usual],
    ["nine conflicts at begin", { begin: (call) => call < 10 && is("conflict")() }, paid, 10, usual],
    ["ten conflicts at begin", { begin: is("conflict") }, conflict, 10, "connect begin rollback"],
    ["a conflict in the handler", { work: (call) => call < 2 && is("conflict")() }, paid, 2, usual],
    ["a conflict at the last statement", { keep: (call) => call < 2 && is("conflict")() }, paid, 2, usual],
    ["a conflict at COMMIT", { commit: (call) => call < 3 && is("conflict")() }, paid, 3, usual],
    ["ten conflicts at COMMIT", { commit: is("conflict") }, conflict, 10, `${usual} hold`],
    ["a lock at begin", { begin: is("locked") }, "in-flight", 1, "connect begin rollback"],
    ["a lock before BEGIN", { connect: is("locked") }, "in-flight", 1, "connect"],
    ["a lock in the handler", { work: is("locked") }, conflict, 1, "connect begin work rollback hold"],
    ["no connection", { connect: is("unavailable") }, unavailable, 1, "connect"],
    ["an error of nobody before BEGIN", { connect: () => boom }, unavailable, 1, "connect"],
    ["an error of nobody at begin", { begin: () => boom }, unavailable, 1, "connect begin rollback"],
    ["a mistake before BEGIN", { connect: () => mistake }, mistake, 1, "connect"],
    ["a refusal by the server at begin", { begin: is("refused") }, unavailable, 1, "connect begin rollback"],
    ...[is("unavailable"), () => boom, is("refused")].map(
      (probe): [string, Script, unknown, number, string] => [
        `no line in the handler, after which the transaction says: ${probe()}`,
        { work: is("unavailable"), probe },
        unavailable,
        1,
        "connect begin work probe rollback",
      ],
    ),
    [
      "somebody else's line in the handler: its own error",
      { work: is("unavailable") },
      is("unavailable")(),
      1,
      undone,
    ],
    ["no line at COMMIT", { commit: is("unavailable") }, refused("commit-unknown"), 1, usual],
    ["an error of nobody at COMMIT", { commit: () => boom }, refused("commit-unknown"), 1, usual],
    ["a handler's error", { work: () => boom }, boom, 1, undone],
    ["a handler's TypeError", { work: () => mistake }, mistake, 1, undone],
    ["a statement that is refused", { work: is("refused") }, is("refused")(), 1, undone],
    [
      "an error of the last statement",
      { keep: () => boom },
      boom,
      1,
      "connect begin work keep rollback claim hold",
    ],
    [
      "a look at a failed transaction that fails",
      { work: () => boom, probe: () => mistake },
      boom,
      1,
      undone,
    ],
    [
      "a handler that fails after it has ended its transaction",
      { work: () => refusal, probe: () => broken, hold: held },
      refused("transaction-broken", 500),
      1,
      undone,
    ],
    ["a COMMIT refused for certain", { commit: is("refused") }, is("refused")(), 1, `${usual} claim hold`],
    [
      "a COMMIT that rolled back",
      { commit: () => broken },
      refused("transaction-broken", 500),
      1,
      `${usual} claim hold`,
    ],
    ["a refusal, told once its nonce is claimed alone", { work: () => refusal }, refusal, 1, undone],
    // A replay may still be paid.
    [
      "a refusal whose nonce a replay has had meanwhile",
      { work: () => refusal, claim: () => "seen" },
      expect.objectContaining({ status: 503, code: "transaction-unavailable", cause: refusal }),
      1,
      undone,
    ],
    [
      "a refusal whose nonce cannot be claimed alone",
      { work: () => refusal, claim: () => boom },
      unavailable,
      1,
      undone,
    ],
    [
      "a handler's own error, which is no answer for good, whose nonce a replay has had meanwhile",
      { work: () => boom, claim: () => "seen" },
      boom,
      1,
      undone,
    ],
    [
      "a handler's own error, whose nonce cannot be claimed alone",
      { work: () => boom, claim: () => mistake },
      boom,
      1,
      undone,
    ],
    // What the store has seen to stay is no reason to run again, whoever has the key by now.
    ...[() => refusal, is("conflict"), is("unavailable")].flatMap((work) =>
      [held, () => undefined].map((hold): [string, Script, unknown, number, string] => [
        `a failure of which the store could not roll everything back: ${work()}, ${hold() ?? "not held"}`,
        { work, hold, rollback: () => transactionNotRolledBack("a table has no transactions", work()) },
        expect.objectContaining({
          status: 503,
          code: "transaction-held",
          cause: expect.objectContaining({ message: expect.stringMatching(/a table has no transactions$/) }),
        }),
        1,
        work().message === "conflict" ? undone.replace("probe ", "") : undone,
      ]),
    ),
    [
      "a failure of which something has committed, whose nonce cannot be claimed alone",
      { work: () => boom, claim: () => mistake, hold: held },
      refused("transaction-held"),
      1,
      undone,
    ],
    // Something of a run has committed all the same: nobody is refused for good, and nothing is repeated.
    ...[() => refusal, () => boom].map((work): [string, Script, unknown, number, string] => [
      `a failure of which something has committed: ${work()}`,
      { work, hold: held },
      refused("transaction-held"),
      1,
      undone,
    ]),
    [
      "an error of the last statement behind which something has committed",
      { keep: () => boom, hold: held },
      refused("transaction-held"),
      1,
      "connect begin work keep rollback claim hold",
    ],
    [
      "a COMMIT refused for certain, behind which something has committed",
      { commit: is("refused"), hold: held },
      refused("transaction-held"),
      1,
      `${usual} claim hold`,
    ],
    [
      "a conflict in the handler behind which something has committed",
      { work: is("conflict"), hold: held },
      refused("transaction-held"),
      1,
      "connect begin work rollback hold",
    ],
    [
      "a conflict at COMMIT behind which something has committed",
      { commit: is("conflict"), hold: held },
      refused("transaction-held"),
      1,
      `${usual} hold`,
    ],
    [
      "the tenth conflict, behind which something has committed",
      { work: is("conflict"), hold: (call) => (call === 10 ? "held" : undefined) },
      refused("transaction-held"),
      10,
      "connect begin work rollback hold",
    ],
    [
      "a lock in the handler behind which something has committed",
      { work: is("locked"), hold: held },
      refused("transaction-held"),
      1,
      "connect begin work rollback hold",
    ],
    [
      "a conflict after which the engine does not say whether something has committed",
      { work: is("conflict"), hold: () => boom },
      unknown,
      1,
      "connect begin work rollback hold",
    ],
    ...[() => refusal, () => boom, () => mistake].map((work): [string, Script, unknown, number, string] => [
      `a failure after which the engine does not say whether something has committed: ${work()}`,
      { work, hold: () => new Error("store down") },
      unknown,
      1,
      undone,
    ]),
    [
      "a handler that broke its transaction, after which the engine does not say whether something has committed",
      { work: () => boom, probe: () => broken, hold: is("unavailable") },
      unknown,
      1,
      undone,
    ],
    [
      "a COMMIT refused for certain, after which the engine does not say whether something has committed",
      { commit: is("refused"), hold: is("unavailable") },
      unknown,
      1,
      `${usual} claim hold`,
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

  test("gives both errors as the cause when the look after a rollback fails, with Retry-After", async () => {
    const down = new Error("store down");
    const { run } = scripted({ work: () => refusal, hold: () => down });
    const error = await run().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ status: 503, headers: { "Retry-After": "7" } });
    expect(error).toHaveProperty("cause.errors", [refusal, down]);
  });

  test("tells a refusal where requests have no nonce, once nothing is found that has committed", async () => {
    const { run, log } = scripted({ work: () => refusal, claim: () => "seen" });
    await expect(run({ keys })).rejects.toBe(refusal);
    expect(log).toEqual(["connect", "begin", "work", "probe", "rollback", "hold"]);
  });

  test("holds no key where there is none, such as of a task", async () => {
    const { run, log } = scripted({ work: () => boom });
    await expect(run({ keys: [] })).rejects.toBe(boom);
    expect(log).toEqual(["connect", "begin", "work", "probe", "rollback"]);
  });

  test("begins a repeat with tokens for its keys and its nonce that no other run has", async () => {
    const { run, claims } = scripted({ work: (call) => call < 4 && is("conflict")() });
    expect(await run()).toBe(paid);
    expect(claims).toHaveLength(4);
    const of = (tokens: readonly unknown[]): number => new Set(tokens).size;
    expect(of(claims.map((claim) => claim.keys[0]?.token))).toBe(4);
    expect(of(claims.map((claim) => claim.nonce?.token))).toBe(4);
    for (const claim of claims) {
      expect(claim).toMatchObject({
        keys: [{ key: "k", fingerprint: "f" }],
        nonce: { scope: "s", nonce: "n", retainMs: 1_000 },
      });
    }
    expect(claims[0]).toMatchObject({ keys, nonce });
  });

  test("refuses nobody for good whose repeat finds the nonce used: it may be of the run before", async () => {
    const seen = { nonce: "seen", keys: [] } as const;
    const begun = [{ nonce: "fresh", keys: [{ status: "begun" }] } as const, seen];
    const { run, calls } = scripted({ work: is("conflict") }, { begun });
    await expect(run()).rejects.toMatchObject({ status: 503, code: "transaction-unavailable" });
    expect(calls).toMatchObject({ begin: 2, work: 1 });
  });

  test("claims the nonce of a rolled back request by a token that the run did not have", async () => {
    const { run, aloneTokens } = scripted({ work: () => refusal });
    await expect(run()).rejects.toBe(refusal);
    expect(aloneTokens).toHaveLength(1);
    expect(aloneTokens).not.toContain(nonce.token);
  });

  test.each<[string, Script, readonly string[]]>([
    ["succeeds", {}, ["open", "close"]],
    ["throws", { work: () => boom }, ["open", "close, failed"]],
    [
      "meets a conflict",
      { work: (call) => call < 2 && is("conflict")() },
      ["open", "close, failed", "open", "close"],
    ],
  ])("closes the tx of a handler that %s", async (_how, script, expected) => {
    const { run, gate } = scripted(script);
    await run().catch(() => {});
    expect(gate).toEqual(expected);
  });

  test.each([1, 3])(
    "fails a handler that succeeds while %i statements have no answer yet",
    async (unanswered) => {
      const { run, log, calls } = scripted({}, { closed: { unanswered, hasWritten: true, idleCommands: 0 } });
      await expect(run()).rejects.toMatchObject({
        code: "transaction-broken",
        message: expect.stringMatching(/still on the way/),
      });
      expect(log).toEqual(["connect", "begin", "work", "probe", "rollback", "claim", "hold"]);
      expect(calls.commit).toBeUndefined();
    },
  );

  test.each<[string, boolean, number | undefined, boolean, number?]>([
    ["a driver has reported a changed row", true, 0, true],
    ["the engine has counted a row that no driver reports", false, 1, true],
    ["the engine has counted more than the commands that changed nothing", false, 3, true, 2],
    ["the engine has counted only commands that changed nothing", false, 2, false, 2],
    ["neither has", false, 0, false],
    ["no engine counts, and no driver has reported one", false, undefined, false],
  ])(
    "says whether the handler has written: %s",
    async (_how, hasWritten, written, expected, idleCommands = 0) => {
      const { run, told } = scripted(
        {},
        { closed: { unanswered: 0, hasWritten, idleCommands }, ...(written !== undefined && { written }) },
      );
      expect(await run()).toBe(paid);
      expect(told).toEqual([expected]);
    },
  );

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
    const { owner, run } = scripted({ work: () => working });
    const running = run();
    expect(await owner.drain(30)).toBe(1);
    await expect(run()).rejects.toMatchObject({
      code: "draining",
      headers: { Connection: "close", "Retry-After": "7" },
    });
    const drained = owner.drain(30_000);
    finish();
    expect(await running).toBe(paid);
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
